"""All share groups of one broker: their partitions that it leads, and their members' sessions."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.queues.partition_shares import PartitionShares
from kafkaesque.broker.queues.share_calls import ShareDesk
from kafkaesque.broker.queues.share_sessions import ShareSession, ShareSessions
from kafkaesque.broker.queues.share_settings import ShareSettingsInForce
from kafkaesque.clock import Clock
from kafkaesque.errors import NotLeader
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.machines.queues.share_tally import ShareTally

ANY_TERM = -1


class BrokerShares:
    """What this broker hands out to share groups."""

    def __init__(
        self,
        desk: ShareDesk,
        clock: Clock,
        settings: Callable[[], Mapping[str, Mapping[str, str]]],
    ) -> None:
        self.desk = desk
        self.settings = ShareSettingsInForce(settings)
        self.sessions = ShareSessions(self._release)
        self.tally = ShareTally()
        self._clock = clock
        self._partitions: dict[Place, PartitionShares] = {}

    def of(self, place: Place, partition: Partition) -> PartitionShares:
        """Return the groups of a partition that this broker leads; raises NotLeader."""
        before = self._partitions.get(place)
        if before is not None and before.partition is partition:
            if before.is_current:
                return before
            if before.term == partition.term:  # asking again and again would not change that
                raise NotLeader(None)
        partition.check_term(ANY_TERM)  # raises NotLeader
        found = PartitionShares(place, partition, self.desk, self._clock, self.settings, self.tally)
        self._partitions[place] = found
        if before is not None:
            before.close()
        return found

    @property
    def partitions(self) -> Sequence[PartitionShares]:
        """Every partition with share groups."""
        return tuple(self._partitions.values())

    @property
    def led(self) -> Sequence[PartitionShares]:
        """Every partition with share groups that this broker still leads."""
        return [shares for shares in self._partitions.values() if shares.is_current]

    def came(self, group: str, places: Iterable[Place]) -> None:
        """Note that a member begins to read partitions: what was set meanwhile holds for it."""
        for place in places:
            shares = self._partitions.get(place)
            if shares is not None:
                shares.look_again(group)

    def tick(self) -> None:
        """Let locks expire, and forget partitions that are led elsewhere now."""
        self.desk.coordinators.tick()
        for place, shares in list(self._partitions.items()):
            shares.tick()
            if not shares.is_current and self._partitions.get(place) is shares:
                del self._partitions[place]

    def _release(self, session: ShareSession) -> None:
        for place in session.held:
            shares = self._partitions.get(place)
            if shares is not None:
                shares.release(session.group, session.member)
