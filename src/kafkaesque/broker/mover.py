"""Moves the partitions that are led here to where the catalog wants them.

The leader of a partition changes its group, one step at a time, until those who are to hold it are
its only voters, and then tells the catalog:

    number the group's voters with the move      so that no leader of an earlier move acts any more
    add those who are missing, as learners       they are sent the log, but wait for an allowance
    let those who have caught up vote            one at a time
    remove those who are not to vote             one at a time, while all others keep up
    hand over, if this broker is to go           the next leader goes on from here
    report                                       again, until the catalog shows it

There is no state but the group's own log and the catalog: whoever leads next goes on from what it
finds. A broker that is down is waited for. Nothing here deletes anything: brokers that are to hold
the partition no more see that in the catalog (`broker/topics.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, field

from kafkaesque.broker.peers import ReplyTo
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.replica_set import ReplicaSet
from kafkaesque.broker.topic_folders import group_of
from kafkaesque.clock import Clock
from kafkaesque.cluster_config import MoveConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import KafkaesqueError, LogError, RaftError
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.machines.catalog import Move, Topic
from kafkaesque.machines.catalog_commands import Command, FinishMove
from kafkaesque.machines.placement import Replicas
from kafkaesque.raft.leadership import Leadership
from kafkaesque.types import GroupId, Index, NodeId, Offset

TICKS_BETWEEN = 4
"""How often each group is looked at: a step takes a round trip and two syncs anyway."""

ASK_TICKS = 20
"""How long to wait for the catalog to show what was reported before it is reported again."""

ELAPSED_MS_MAX = 1_000
"""What was not sent in a longer pause is not sent later."""


class Behind(Struct, frozen=True, kw_only=True):
    """How much of a partition's log a new replica still lacks; of bytes, about how many."""

    entries: int
    bytes: int


class MoveProgress(Struct, frozen=True, kw_only=True):
    """One move, as far as this broker knows it."""

    topic: str
    partition: int
    replicas: Replicas
    """Where the partition is."""

    nodes: Replicas
    """Where it is to be."""

    leaving: Replicas
    """Who holds it because of an earlier move that was given up."""

    behind: Mapping[NodeId, Behind] | None
    """The new replicas that have not caught up; None where another broker leads the partition."""


class _Led(Struct):
    """A partition that is led here and is being moved."""

    topic: Topic
    index: int
    move: Move
    replica: Replica
    leadership: Leadership

    @property
    def learners(self) -> Replicas:
        return self.replica.raft.voters.learners


class _Noted(Struct):
    """What was seen of a group when it was last looked at."""

    commit: Index
    asked_at: int | None = field(default=None)


class Mover:
    """The moves that one broker carries out. `moving` gives the topics that have any."""

    def __init__(
        self,
        node: NodeId,
        replicas: ReplicaSet,
        moving: Callable[[], Iterable[Topic]],
        ask: Callable[[Command, ReplyTo], None],
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
        """Let other settings hold."""
        self._config = config

    def tick(self) -> None:
        """Let time pass: give allowances, and take the next step of each move now and then."""
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
                continue  # it is busy, has just lost its lead, or our catalog is behind its group
            room -= not was_catching_up and self._is_catching_up(one)
            self._noted[group].commit = one.replica.raft.commit

    def progress(self) -> list[MoveProgress]:
        """Return every move of which this broker knows, in the order of topics and partitions."""
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
        """Let those who catch up share what may be sent for them since the last time."""
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
        """Do what comes next for one partition, if it can be done now."""
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
        """Remove one who is not to vote; report when there is none."""
        voters = one.replica.raft.voters.voters
        surplus = [node for node in voters if node not in one.move.nodes]
        if not surplus:
            self._report(one, noted)
            return
        others = [node for node in one.move.nodes if node != self._node]
        if not all(self._is_in_step(one, node, noted.commit) for node in others):
            return  # whoever is removed may be needed yet
        if surplus == [self._node]:
            one.replica.transfer(others[0])
            return
        gone = next(node for node in surplus if node != self._node)
        self._change(one, tuple(node for node in voters if node != gone), ())

    def _learners(self, one: _Led, *, is_room: bool) -> Replicas:
        """Return who is to learn: those who are to vote and do not yet, if they can be reached."""
        voters = one.replica.raft.voters
        return tuple(
            node
            for node in sorted(one.move.nodes)
            if node not in voters.voters
            and (node in voters.learners or (is_room and self._replicas.is_reachable(node)))
        )

    def _is_in_step(self, one: _Led, node: NodeId, commit: Index) -> bool:
        """Whether a replica may be relied on: it is there, and has what was committed before.

        It must also know that the last change of the group is committed: so it was there a moment
        ago. One that may not vote yet, because it left the group earlier, tells of no commit.
        """
        progress = one.leadership.progress.get(node)
        if progress is None or not self._replicas.is_reachable(node):
            return False
        held = min(progress.match, progress.commit)
        needed = max(commit, one.replica.raft.voters_index + 1, one.leadership.opened_at + 1)
        return held >= needed

    def _change(self, one: _Led, voters: Iterable[NodeId], learners: Replicas) -> None:
        changed = Voters(voters=tuple(sorted(voters)), learners=learners, move=one.move.number)
        one.replica.change_voters(changed, _ignore)
        for node in learners:
            progress = one.leadership.progress.get(node)
            if progress is not None and progress.allowance is None:
                progress.allowance = 0  # its first append is under way, the rest waits

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
        try:
            self._ask(command, _ignore)
        except KafkaesqueError:
            return  # nobody leads the catalog, or it has heard of it already


def _behind(one: _Led) -> dict[NodeId, Behind]:
    raft, log = one.replica.raft, one.replica.log
    found = {}
    for node in one.learners:
        match = max(one.leadership.progress[node].match, log.start.index)
        if match < raft.end:
            try:
                size = _bytes_from(log, log.offset_at(match))
            except LogError as error:  # an index is made anew, and its segment is damaged
                one.replica.unreadable(error)
                size = log.segments.size_bytes
            found[node] = Behind(entries=raft.end - match, bytes=size)
    return found


def _bytes_from(log: PartitionLog, offset: Offset) -> int:
    if offset >= log.end_offset:
        return 0
    later = sum(info.bytes for info in log.segments.each_info() if info.base > offset)
    return later + log.segments.bytes_from(offset)


def _ignore(_: object) -> None:
    """The next look finds what became of it."""
