"""A group member that polls in a separate thread, for blocking clients."""

import threading
from collections.abc import Callable, Iterable, Sequence

from tests.compat.clients.client import SECONDS_MAX, Seen


class PollingMember:
    """Polls until it is closed; `close` raises the errors of the thread."""

    def __init__(
        self,
        poll: Callable[[], Iterable[Seen]],
        assigned: Callable[[], set[int]],
        leave: Callable[[], None],
    ) -> None:
        self._poll = poll
        self._assigned = assigned
        self._leave = leave
        self._seen: list[Seen] = []
        self._now: set[int] = set()
        self._is_over = threading.Event()
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def seen(self) -> Sequence[Seen]:
        """What it has received so far."""
        return self._seen

    @property
    def assigned(self) -> set[int]:
        """The partitions that are assigned to it now."""
        return self._now

    def close(self) -> None:
        """Commit what it received and leave."""
        self._is_over.set()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive(), "the member does not end"
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self._seen += self._poll()
                self._now = self._assigned()
            self._leave()
        except BaseException as error:  # noqa: BLE001 - given to the test by close()
            self._errors.append(error)
