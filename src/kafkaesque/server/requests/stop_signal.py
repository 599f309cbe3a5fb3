"""Notifies long polls that the broker stops, so that they answer with what they have."""

from collections.abc import Callable


class Stopping:
    """Set once by the node, observed by every long poll."""

    def __init__(self) -> None:
        self.is_begun = False
        self._callbacks: dict[Callable[[], None], None] = {}

    def begin(self) -> None:
        """Run all callbacks."""
        self.is_begun = True
        callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks:
            callback()

    def when_begun(self, callback: Callable[[], None]) -> None:
        """Call back when the broker starts to stop, unless `forget` is called first."""
        self._callbacks[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Drop a callback; not needed after it was called."""
        self._callbacks.pop(callback, None)
