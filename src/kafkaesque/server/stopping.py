"""Tells those who wait for more that the broker stops, so that they answer with what there is."""

from collections.abc import Callable


class Stopping:
    """Said once by the node, heard by every long poll."""

    def __init__(self) -> None:
        self.is_begun = False
        self._callbacks: dict[Callable[[], None], None] = {}

    def begin(self) -> None:
        """Tell everyone who waits."""
        self.is_begun = True
        callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks:
            callback()

    def when_begun(self, callback: Callable[[], None]) -> None:
        """Call back when the broker begins to stop, unless it is told to `forget`."""
        self._callbacks[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Call this one no more; one that was called need not be forgotten."""
        self._callbacks.pop(callback, None)
