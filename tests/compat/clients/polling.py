"""A member of a group that polls in a thread of its own, for clients that block."""

import threading
from collections.abc import Callable, Iterable, Sequence

from tests.compat.clients.client import SECONDS_MAX, Seen


class PollingMember:
    """Polls until it is closed; what goes wrong in the thread is raised by `close`."""

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
        """What it got so far."""
        return self._seen

    @property
    def assigned(self) -> set[int]:
        """The partitions that are its own now."""
        return self._now

    def close(self) -> None:
        """Commit what it got and leave."""
        self._is_over.set()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive(), "the member does not come to an end"
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
