"""Empties a log that cannot be opened and has others fill it, but only when that is safe.

A log with a damaged end, or one that its machine cannot read, cannot be mended by segment
(`broker/cluster/repairs.py`). It is put aside, and the other replicas fill it
(`docs/adr/0008-damaged-replicas-leave-their-term.md`). First the broker asks every other voter for
the state of its copy (`broker/replication/copy_query.py`): a majority must be whole, and no other
copy may be in the middle of a refill (`docs/adr/0022-logs-are-emptied-one-at-a-time.md`). Until
then not a byte is touched, and the broker reports what it waits for.
"""

from collections.abc import Callable, Collection, Mapping

from kafkaesque.broker.cluster.calls import COPY
from kafkaesque.broker.cluster.peers import Peers
from kafkaesque.broker.replication.copy_query import (
    Condition,
    CopyAsked,
    CopyTold,
    CopyWord,
    obstacle,
    tell_copy,
)
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.storage.store import Store
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.errors import LogError
from kafkaesque.events import DamageFound, RefillBegun, RefillWaits
from kafkaesque.log.errors import CorruptLog
from kafkaesque.types import GroupId, NodeId


class Wait:
    """A log that waits to be emptied."""

    def __init__(
        self, damage: CorruptLog, voters: Collection[NodeId], refilled: Callable[[], None]
    ) -> None:
        self.damage = damage
        self.reason = "the other brokers have not been asked yet"
        """Why it is not emptied yet."""
        self.voters = voters
        """The voters as far as this copy remembers."""
        self.asked: dict[NodeId, CopyWord | None] = {}
        """The brokers asked last, and their answers."""
        self.refilled = refilled
        self.look_at_ms = 0

    @property
    def is_asking(self) -> bool:
        """Whether an answer is outstanding."""
        return any(word is None for word in self.asked.values())


class Refills:
    """One broker's logs to be emptied. `failed` is called when the disk fails."""

    def __init__(
        self,
        node: NodeId,
        store: Store,
        peers: Peers,
        clock: Clock,
        config: HousekeepingConfig,
        failed: Callable[[LogError], None],
    ) -> None:
        self.done = 0
        """How many logs were emptied."""
        self._node = node
        self._store = store
        self._peers = peers
        self._clock = clock
        self._config = config
        self._failed = failed
        self._waits: dict[GroupId, Wait] = {}

    @property
    def waiting(self) -> Mapping[GroupId, Wait]:
        """The logs that cannot be opened and were not emptied yet."""
        return self._waits

    def want(
        self,
        group: GroupId,
        damage: CorruptLog,
        holders: Collection[NodeId],
        refilled: Callable[[], None],
    ) -> bool:
        """Empty a log that cannot be opened as soon as that is safe, then call `refilled`.

        `holders` may have a copy that the damaged one does not know of. Returns False if no broker
        can fill it: then only an operator can decide.
        """
        voters = set(self._store.journal.groups[group].marks.voters()[-1][1].members)
        if not (voters | set(holders)) - {self._node} or voters == {self._node}:
            return False
        if group not in self._waits:
            self._store.events.tell(DamageFound(partition=group, reason=str(damage)))
            self._waits[group] = Wait(damage, voters, refilled)
        wait = self._waits[group]
        wait.damage, wait.refilled = damage, refilled
        for peer in sorted((voters | set(holders)) - {self._node}):
            wait.asked.setdefault(peer, _UNASKED)
        return True

    def forget(self, group: GroupId) -> None:
        """Leave a log alone: it no longer belongs to this broker."""
        self._waits.pop(group, None)

    def tell(self, asked: CopyAsked, replica: Replica | None) -> CopyTold:
        """Report the state of the local copy to another broker."""
        if asked.group in self._waits:
            return CopyTold(condition=Condition.WAITING)
        return tell_copy(replica)

    def tick(self) -> None:
        """Periodically ask about each log that waits."""
        now_ms = self._clock.monotonic_ms()
        for group, wait in list(self._waits.items()):
            if now_ms >= wait.look_at_ms and not wait.is_asking:
                wait.look_at_ms = now_ms + self._config.repair_look_ms
                self._ask_all(group, wait)

    def _ask_all(self, group: GroupId, wait: Wait) -> None:
        """Ask all brokers at once, so that the answers are of about the same time."""
        peers = list(wait.asked)
        wait.asked = dict.fromkeys(peers)
        for peer in peers:

            def told(word: CopyWord, peer: NodeId = peer) -> None:
                wait.asked[peer] = word
                if not wait.is_asking and self._waits.get(group) is wait:
                    self._decide(group, wait)

            self._peers.ask(peer, COPY, CopyAsked(source=self._node, group=group), told)

    def _decide(self, group: GroupId, wait: Wait) -> None:
        words = {peer: word for peer, word in wait.asked.items() if word is not None}
        reason = obstacle(self._node, wait.voters, words)
        for word in words.values():  # next time, also ask the voters that these name
            if isinstance(word, CopyTold):
                for peer in set(word.voters) - {self._node}:
                    wait.asked.setdefault(peer, _UNASKED)
        if reason is None:
            self._empty(group, wait)
        elif reason != wait.reason:
            wait.reason = reason
            self._store.events.tell(RefillWaits(partition=group, reason=reason))

    def _empty(self, group: GroupId, wait: Wait) -> None:
        self._store.events.tell(RefillBegun(partition=group, reason=str(wait.damage)))
        try:
            self._store.refill_log(group, wait.damage)
        except LogError as error:
            self._failed(error)
            return
        del self._waits[group]
        self.done += 1
        wait.refilled()


_UNASKED = CopyTold(condition=Condition.ABSENT)
"""Stands for the answer of a broker that was not asked yet."""
