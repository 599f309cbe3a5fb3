"""Moves the partitions that are led here to the brokers that the catalog wants.

The leader of a partition changes its group step by step until the intended holders are its only
voters, and then reports to the catalog:

    number the group's voters with the move      fences leaders of earlier moves
    add the missing replicas as learners         they get the log, within an allowance
    make caught-up learners voters               one at a time
    remove surplus voters                        one at a time, while all others keep up
    hand over, if this broker must leave         the next leader continues from here
    report                                       repeated until the catalog shows it

There is no state but the group's own log and the catalog: a new leader continues from what it
finds. Brokers that are down are waited for. Nothing here deletes anything: brokers that no longer
hold the partition see that in the catalog (`broker/cluster/topics.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, field

from kafkaesque.broker.cluster.replica_set import ReplicaSet
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.callbacks import ignore
from kafkaesque.clock import Clock
from kafkaesque.cluster_config import MoveConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError, RaftError
from kafkaesque.machines.catalog.catalog import Move, Topic
from kafkaesque.machines.catalog.catalog_commands import AskCatalog, FinishMove
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.raft.leadership import Leadership
from kafkaesque.types import GroupId, Index, NodeId

TICKS_BETWEEN = 4
"""How often each group is checked: a step takes a round trip and two syncs anyway."""

ASK_TICKS = 20
"""How long to wait for the catalog to show a report before repeating it."""

ELAPSED_MS_MAX = 1_000
"""An allowance that goes unused in a longer pause is lost."""


class Behind(Struct, frozen=True, kw_only=True):
    """How much of a partition's log a new replica still lacks; bytes are approximate."""

    entries: int
    bytes: int


class MoveProgress(Struct, frozen=True, kw_only=True):
    """One move, as far as this broker knows it."""

    topic: str
    partition: int
    replicas: Replicas
    """The current replicas."""

    nodes: Replicas
    """The target replicas."""

    leaving: Replicas
    """Brokers that hold it because of an earlier, abandoned move."""

    behind: Mapping[NodeId, Behind] | None
    """New replicas that have not caught up; None if another broker leads the partition."""


class _Led(Struct):
    """A partition that is led here and is moving."""

    topic: Topic
    index: int
    move: Move
    replica: Replica
    leadership: Leadership

    @property
    def learners(self) -> Replicas:
        return self.replica.raft.voters.learners


class _Noted(Struct):
    """The state of a group at the last check."""

    commit: Index
    asked_at: int | None = field(default=None)


class Mover:
    """The moves that one broker carries out. `moving` returns the topics that have any."""

    def __init__(
        self,
        node: NodeId,
        replicas: ReplicaSet,
        moving: Callable[[], Iterable[Topic]],
        ask: AskCatalog,
        clock: Clock,
        config: MoveConfig,
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._moving = moving
        self._ask = ask
        self._clock = clock
        self._config = config
        self._ticks = 0
        self._refilled_ms = clock.monotonic_ms()
        self._noted: dict[GroupId, _Noted] = {}

    def configure(self, config: MoveConfig) -> None:
        """Apply new settings."""
        self._config = config

    def tick(self) -> None:
        """Advance one tick: grant allowances, and periodically take each move's next step."""
        self._ticks += 1
        led = list(self._led())
        self._refill(led)
        if self._ticks % TICKS_BETWEEN:
            return
        noted, self._noted = self._noted, {}
        room = self._config.moves_max - sum(1 for one in led if self._is_catching_up(one))
        for one in led:
            group = one.replica.group
            self._noted[group] = noted.get(group) or _Noted(one.replica.raft.commit)
            was_catching_up = self._is_catching_up(one)
            try:
                self._step(one, self._noted[group], is_room=was_catching_up or room > 0)
            except RaftError:
                continue  # busy, just lost leadership, or our catalog lags behind the group
            room -= not was_catching_up and self._is_catching_up(one)
            self._noted[group].commit = one.replica.raft.commit

    def progress(self) -> list[MoveProgress]:
        """Return every move that this broker knows, ordered by topic and partition."""
        led = {(one.topic.topic_id, one.index): one for one in self._led()}
        found = []
        for topic in sorted(self._moving(), key=lambda topic: topic.name):
            for index, move in sorted(topic.moves.items()):
                one = led.get((topic.topic_id, index))
                found.append(
                    MoveProgress(
                        topic=topic.name,
                        partition=index,
                        replicas=topic.replicas[index],
                        nodes=move.nodes,
                        leaving=move.leaving,
                        behind=None if one is None else _behind(one),
                    )
                )
        return found

    # ── allowances ───────────────────────────────────────────────────────────────────────────

    def _refill(self, led: list[_Led]) -> None:
        """Split the bytes allowed since the last time among the replicas that catch up."""
        now_ms = self._clock.monotonic_ms()
        elapsed_ms = min(now_ms - self._refilled_ms, ELAPSED_MS_MAX)
        self._refilled_ms = now_ms
        behind = [
            progress
            for one in led
            for node in one.learners
            if (progress := one.leadership.progress.get(node)) is not None
            and progress.match < one.replica.raft.end
        ]
        if not behind:
            return
        bytes_max = self._config.catch_up_bytes_per_second * elapsed_ms // 1000
        share = max(1, bytes_max // len(behind))
        for progress in behind:
            progress.allowance = min(progress.allowance or 0, 0) + share

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def _led(self) -> Iterator[_Led]:
        for topic in sorted(self._moving(), key=lambda topic: topic.name):
            for index, move in sorted(topic.moves.items()):
                replica = self._replicas.by_group.get(group_of(topic, index))
                leadership = None if replica is None else replica.raft.leadership
                if replica is not None and leadership is not None and replica.is_serving:
                    yield _Led(topic, index, move, replica, leadership)

    def _is_catching_up(self, one: _Led) -> bool:
        return any(self._replicas.is_reachable(node) for node in one.learners)

    def _step(self, one: _Led, noted: _Noted, *, is_room: bool) -> None:
        """Take the next step for one partition, if possible now."""
        raft, move = one.replica.raft, one.move
        voters = raft.voters
        if one.leadership.transferee is not None or raft.is_changing:
            return  # one change at a time
        learners = self._learners(one, is_room=is_room)
        if voters.move < move.number or learners != voters.learners:
            self._change(one, voters.voters, learners)
            return
        for node in learners:
            if self._is_in_step(one, node, noted.commit):
                rest = tuple(other for other in learners if other != node)
                self._change(one, (*voters.voters, node), rest)
                return
        if set(move.nodes) <= set(voters.voters):
            self._reduce(one, noted)

    def _reduce(self, one: _Led, noted: _Noted) -> None:
        """Remove one surplus voter; report if there is none."""
        voters = one.replica.raft.voters.voters
        surplus = [node for node in voters if node not in one.move.nodes]
        if not surplus:
            self._report(one, noted)
            return
        others = [node for node in one.move.nodes if node != self._node]
        if not all(self._is_in_step(one, node, noted.commit) for node in others):
            return  # the surplus voter may still be needed
        if surplus == [self._node]:
            one.replica.transfer(others[0])
            return
        gone = next(node for node in surplus if node != self._node)
        self._change(one, tuple(node for node in voters if node != gone), ())

    def _learners(self, one: _Led, *, is_room: bool) -> Replicas:
        """Return the intended learners: reachable target replicas that do not vote yet."""
        voters = one.replica.raft.voters
        return tuple(
            node
            for node in sorted(one.move.nodes)
            if node not in voters.voters
            and (node in voters.learners or (is_room and self._replicas.is_reachable(node)))
        )

    def _is_in_step(self, one: _Led, node: NodeId, commit: Index) -> bool:
        """Whether a replica can be relied on: reachable, and with everything committed before.

        It must also know that the group's last change is committed, which proves that it was alive
        a moment ago. A replica that may not vote yet, because it left the group earlier, reports no
        commit.
        """
        progress = one.leadership.progress.get(node)
        if progress is None or not self._replicas.is_reachable(node):
            return False
        held = min(progress.match, progress.commit)
        needed = max(commit, one.replica.raft.voters_index + 1, one.leadership.opened_at + 1)
        return held >= needed

    def _change(self, one: _Led, voters: Iterable[NodeId], learners: Replicas) -> None:
        changed = Voters(voters=tuple(sorted(voters)), learners=learners, move=one.move.number)
        one.replica.change_voters(changed, ignore)  # the next check finds the outcome
        for node in learners:
            progress = one.leadership.progress.get(node)
            if progress is not None and progress.allowance is None:
                progress.allowance = 0  # its first append is in flight, the rest waits

    def _report(self, one: _Led, noted: _Noted) -> None:
        if noted.asked_at is not None and self._ticks - noted.asked_at < ASK_TICKS:
            return
        noted.asked_at = self._ticks
        command = FinishMove(
            topic_id=one.topic.topic_id,
            partition=one.index,
            nodes=list(one.move.nodes),
            number=one.move.number,
        )
        self._ask(command, ignore)


def _behind(one: _Led) -> dict[NodeId, Behind]:
    raft, log = one.replica.raft, one.replica.log
    found = {}
    for node in one.learners:
        match = max(one.leadership.progress[node].match, log.start.index)
        if match < raft.end:
            try:
                offset = log.offset_at(match)
                size = log.segments.bytes_behind(offset) if offset < log.end_offset else 0
            except LogError as error:  # the index needs a rebuild, and its segment is damaged
                one.replica.unreadable(error)
                size = log.segments.size_bytes
            found[node] = Behind(entries=raft.end - match, bytes=size)
    return found
