"""Tells those who wait for more that the broker stops, so that they answer with what there is."""

from collections.abc import Callable


class Stopping:
    """Said once by the node, heard by every long poll."""

    def __init__(self) -> None:
        self.is_begun = False
        self._callbacks: dict[object, Callable[[], None]] = {}

    def begin(self) -> None:
        """Tell everyone who waits."""
        self.is_begun = True
        callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            callback()

    def when_begun(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the broker begins to stop; returns how to give up."""
        key = object()
        self._callbacks[key] = callback

        def forget() -> None:
            self._callbacks.pop(key, None)

        return forget
