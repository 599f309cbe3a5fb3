"""Empties a log that cannot be opened and has it filled by others, but only when that is safe.

A log whose end is damaged, or on which a machine lives that cannot read it, has nothing that could
be mended by segment (`broker/repairs.py`). It is put aside and filled by the other replicas
(`docs/adr/0008-damaged-replicas-leave-their-term.md`). Before that the broker asks every other
voter how its copy is (`broker/copies.py`): a majority must be whole, and no other copy may be being
filled (`docs/adr/0022-logs-are-emptied-one-at-a-time.md`). Until then not a byte is touched, and
the broker says what it waits for.
"""

import logging
from collections.abc import Callable, Collection, Mapping

from kafkaesque.broker.copies import Condition, CopyAsked, CopyTold, CopyWord, obstacle, tell_copy
from kafkaesque.broker.peers import Peers
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.store import Store
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.errors import CorruptLog, LogError
from kafkaesque.types import GroupId, NodeId

log = logging.getLogger(__name__)


class Wait:
    """A log that waits to be emptied."""

    def __init__(
        self, damage: CorruptLog, voters: Collection[NodeId], refilled: Callable[[], None]
    ) -> None:
        self.damage = damage
        self.reason = "the other brokers are yet to be asked"
        """Why it is not emptied yet."""
        self.voters = voters
        """Who votes, as far as this copy remembers."""
        self.asked: dict[NodeId, CopyWord | None] = {}
        """Those who were asked last, and what they said."""
        self.refilled = refilled
        self.look_at_ms = 0

    @property
    def is_asking(self) -> bool:
        """Whether an answer is still to come."""
        return any(word is None for word in self.asked.values())


class Refills:
    """The logs of one broker that are to be emptied. `failed` hears of a disk that fails."""

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

        `holders` may have a copy although the damaged one does not know of them. Returns False if
        there is nobody to fill it: then only a person can decide.
        """
        voters = set(self._store.journal.groups[group].marks.voters()[-1][1].members)
        if not (voters | set(holders)) - {self._node} or voters == {self._node}:
            return False
        if group not in self._waits:
            log.error("damage_found partition=%s reason=%s", group, damage)
            self._waits[group] = Wait(damage, voters, refilled)
        wait = self._waits[group]
        wait.damage, wait.refilled = damage, refilled
        for peer in sorted((voters | set(holders)) - {self._node}):
            wait.asked.setdefault(peer, _UNASKED)
        return True

    def forget(self, group: GroupId) -> None:
        """Let a log be: it is not this broker's any more."""
        self._waits.pop(group, None)

    def tell(self, asked: CopyAsked, replica: Replica | None) -> CopyTold:
        """Tell another broker how the copy here is."""
        if asked.group in self._waits:
            return CopyTold(condition=Condition.WAITING)
        return tell_copy(replica)

    def tick(self) -> None:
        """Ask for each log that waits, now and then."""
        now_ms = self._clock.monotonic_ms()
        for group, wait in list(self._waits.items()):
            if now_ms >= wait.look_at_ms and not wait.is_asking:
                wait.look_at_ms = now_ms + self._config.repair_look_ms
                self._ask_all(group, wait)

    def _ask_all(self, group: GroupId, wait: Wait) -> None:
        """Ask everybody at once: all answers are of about the same time."""
        peers = list(wait.asked)
        wait.asked = dict.fromkeys(peers)
        for peer in peers:

            def told(word: CopyWord, peer: NodeId = peer) -> None:
                wait.asked[peer] = word
                if not wait.is_asking and self._waits.get(group) is wait:
                    self._decide(group, wait)

            self._peers.ask_copy(peer, CopyAsked(source=self._node, group=group), told)

    def _decide(self, group: GroupId, wait: Wait) -> None:
        words = {peer: word for peer, word in wait.asked.items() if word is not None}
        reason = obstacle(self._node, wait.voters, words)
        for word in words.values():  # the next time those are asked, too, who came later
            if isinstance(word, CopyTold):
                for peer in set(word.voters) - {self._node}:
                    wait.asked.setdefault(peer, _UNASKED)
        if reason is None:
            self._empty(group, wait)
        elif reason != wait.reason:
            wait.reason = reason
            log.warning("refill_waits partition=%s reason=%s", group, reason)

    def _empty(self, group: GroupId, wait: Wait) -> None:
        log.warning("refill_begun partition=%s reason=%s", group, wait.damage)
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
