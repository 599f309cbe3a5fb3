"""Observers of a backup's progress."""

from kafkaesque.client.topics import Place


class Watch:
    """Receives progress; this one ignores it, subclasses override what they need."""

    def begins(self, *, partitions: int, total: int) -> None:
        """Everything is planned: the number of partitions, and of offsets or bytes in all."""

    def moved(self, *, amount: int, size: int) -> None:
        """This much more of the total is done, with this many bytes."""

    def partition_done(self, place: Place) -> None:
        """One partition is done."""

    def topic_done(self, topic: str, *, records: int, size: int) -> None:
        """One topic is done, with its records and bytes in all."""

    def note(self, sentence: str) -> None:
        """Something differs from the request."""
