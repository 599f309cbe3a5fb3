"""The progress of a backup, drawn on a terminal."""

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from kafkaesque.backup.watch import Watch
from kafkaesque.client.topics import Place

_MEGABYTE = 1_000_000


class Bar(Watch):
    """A progress bar on stderr while entered: partitions, megabytes and megabytes per second."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)
        self._partitions = 0
        self._done = 0
        self._bytes = 0

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def begins(self, *, partitions: int, total: int) -> None:
        """Set the total."""
        self._partitions = partitions
        self._progress.update(self._task, total=total)

    def moved(self, *, amount: int, size: int) -> None:
        """Move the bar."""
        self._bytes += size
        self._progress.update(self._task, advance=amount, description=self._text())

    def partition_done(self, place: Place) -> None:
        """Count a partition."""
        self._done += 1
        self._progress.update(self._task, description=self._text())

    def note(self, sentence: str) -> None:
        """Print above the bar what differs from the request."""
        self._progress.console.print(f"kafkaesque: {sentence}", markup=False, highlight=False)

    def _text(self) -> str:
        seconds = self._progress.tasks[0].elapsed or 0
        rate = self._bytes / seconds / _MEGABYTE if seconds else 0
        return (
            f"{self._done:,} of {self._partitions:,} partitions, "
            f"{self._bytes / _MEGABYTE:,.1f} MB, {rate:,.1f} MB/s"
        )
