"""Goes round all partitions, a few at each tick, and lets each do what its producers need.

It also counts the producers of all partitions. When there are too many, each partition forgets the
same share of its own, those idle longest, in the next round; what came meanwhile goes with it.
"""

from collections.abc import Callable, Iterator

from kafkaesque.broker.partition import Partition
from kafkaesque.errors import DiskFull, LogError

PARTITIONS_PER_TICK = 64
"""About 0.3 ms where nothing is due; 10,000 partitions are seen every eight seconds."""


class ProducerSweep:
    """The upkeep of the producers of all partitions; `failed` is told when the disk fails."""

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
        """In the partitions that this round has seen."""
        self.known = 0
        """Producers that all partitions knew at the end of the last round."""

    def step(self) -> None:
        """Look at the next few partitions; stop early after one that gave the disk work."""
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
                continue  # what is written is safe, and the next round tries again
            except LogError as error:
                self._failed(error)
                return

    def _shrink(self, partition: Partition) -> None:
        producers = partition.producers
        if self.known > self._all_max:
            producers.shrink(len(producers) * self._all_max // self.known)
        self._counted += len(producers)

    def stop(self) -> None:
        """Write down for the next start what spares it much reading."""
        for partition in self._each_partition():
            try:
                partition.producers.stop()
            except DiskFull:
                continue
            except LogError as error:
                self._failed(error)
                return
