"""Whoever wants to see how far a backup is."""

from kafkaesque.client.topics import Place


class Watch:
    """Is told what happens; this one looks away, others override what they want to see."""

    def begins(self, *, partitions: int, total: int) -> None:
        """All is planned: so many partitions, and so many offsets or bytes in all."""

    def moved(self, *, amount: int, size: int) -> None:
        """So much more of the total is done, which was so many bytes."""

    def partition_done(self, place: Place) -> None:
        """One partition is done."""

    def topic_done(self, topic: str, *, records: int, size: int) -> None:
        """One topic is done, with so many records and bytes in all."""

    def note(self, sentence: str) -> None:
        """Something is not quite as it was asked for."""
