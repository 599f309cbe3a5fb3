"""Goes through all partitions, a few per tick, for the upkeep of their producers.

It also counts the producers of all partitions. If there are too many, each partition forgets the
same share of its own in the next round, longest idle first; this also covers producers added
meanwhile.
"""

from collections.abc import Callable, Iterator

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.errors import DiskFull, LogError

PARTITIONS_PER_TICK = 64
"""About 0.3 ms if no work is due; 10,000 partitions take eight seconds."""


class ProducerSweep:
    """The upkeep of all partitions' producers; `failed` is called when the disk fails."""

    def __init__(
        self,
        partitions: Callable[[], Iterator[Partition]],
        failed: Callable[[LogError], None],
        all_max: int,
    ) -> None:
        self._each_partition = partitions
        self._failed = failed
        self._all_max = all_max
        self._round: Iterator[Partition] = iter(())
        self._counted = 0
        """Producers counted so far in this round."""
        self.known = 0
        """Producers of all partitions at the end of the last round."""

    def step(self) -> None:
        """Handle the next few partitions; stop early after one that made the disk work."""
        for _ in range(PARTITIONS_PER_TICK):
            partition = next(self._round, None)
            if partition is None:
                self._round = self._each_partition()
                self.known, self._counted = self._counted, 0
                return
            self._shrink(partition)
            try:
                if partition.producers.upkeep():
                    return
            except DiskFull:
                continue  # what is written is safe, and the next round retries
            except LogError as error:
                self._failed(error)
                return

    def _shrink(self, partition: Partition) -> None:
        producers = partition.producers
        if self.known > self._all_max:
            producers.shrink(len(producers) * self._all_max // self.known)
        self._counted += len(producers)

    def stop(self) -> None:
        """Save state that spares the next start much reading."""
        for partition in self._each_partition():
            try:
                partition.producers.stop()
            except DiskFull:
                continue
            except LogError as error:
                self._failed(error)
                return
