"""Runs the damage matrix on simulated brokers, one world for many cells.

Every row has a separate topic in a world, so that one start, one reading pass and one scrub serve
all of them. Only the broker's own log shows what was noticed, and when.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition_errors import NotHere
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.scrubber import Scrubber
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.config import BrokerConfig, HousekeepingConfig, LogConfig
from kafkaesque.errors import KafkaesqueError, LeaderNotReady, NotLeader
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import GroupId, NodeId, Offset
from tests.damage.harms import Files, Harm
from tests.sim.test_broker_world import broker_of, wait

RECORDS = 50
VALUE = b"." * 150
VICTIM: NodeId = 1
"""The broker whose disk is damaged."""

QUIET = HousekeepingConfig(
    check_interval_ms=500,
    retry_interval_ms=50,
    scrub_bytes_per_second=0,
    repair_look_ms=50,
    repair_retry_ms=200,
)
READS_MAX = 2_000
MEND_STEPS_MAX = 100_000
_NOTICED = re.compile(r"(damage_found|refill_begun|partition_offline|seals_lost) partition=(\S+)")


class Role(StrEnum):
    """The role of the damaged copy in its partition."""

    ALONE = "the only copy"
    LEADER = "leader"
    FOLLOWER = "follower"


class Moment(StrEnum):
    """When the files are damaged."""

    START = "stopped"
    RUNNING = "running"


@dataclass(slots=True, kw_only=True)
class Cell:
    """The result of one row in one column."""

    noticed: str = ""
    """What noticed the damage first; empty if nothing did."""
    result: str = ""
    """The final state of consumers and of the copy."""
    faults: list[str] = field(default_factory=list)
    """What must never happen and did."""

    @property
    def text(self) -> str:
        """The cell as the table shows it."""
        return f"{self.noticed}: {self.result}" if self.noticed else self.result


class UncheckedWorld(BrokerWorld):
    """A world without the checks of Raft's promises, which damaged copies break anyway."""

    def _check(self, machine: BrokerNode) -> None:
        """The matrix reads everything itself."""


class Heard(logging.Handler):
    """What brokers report as noticed, and in which phase of their lives; `with` listens."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.groups: dict[GroupId, str] = {}
        """When each was first reported."""
        self.refilled: set[GroupId] = set()
        self.phase = ""

    def __enter__(self) -> "Heard":
        logging.getLogger("kafkaesque").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafkaesque").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        found = _NOTICED.match(record.getMessage())
        if found is not None and self.phase:
            self.groups.setdefault(found[2], self.phase)
            if found[1] == "refill_begun":
                self.refilled.add(found[2])


def scrub(world: BrokerWorld, machine: BrokerNode) -> None:
    """Let a broker read everything that it has, once."""
    broker = machine.broker
    assert broker is not None, "it ended on its own"
    config = HousekeepingConfig(scrub_bytes_per_second=1 << 30)
    scrubber = Scrubber(machine.clock, config, broker.replicas.by_group, broker.events)

    def has_passed() -> bool:
        scrubber.tick()
        return scrubber.passes > 0

    wait(world, has_passed)
    world.run(2_000)


class Column:
    """One world with a topic for every row."""

    def __init__(
        self,
        harms: Mapping[str, Harm],
        roles: Iterable[Role],
        moment: Moment,
        *,
        is_compacted: bool,
    ) -> None:
        self._harms = harms
        self._moment = moment
        self._is_compacted = is_compacted
        self._roles = list(roles)
        is_alone = self._roles == [Role.ALONE]
        brokers = 1 if is_alone else 3
        settings = BrokerSettings(
            brokers=brokers,
            voters=brokers,
            log=LogConfig(index_interval_bytes=200),
            broker=BrokerConfig(housekeeping=QUIET),
        )
        self._world = UncheckedWorld(1, settings)
        self._names: dict[tuple[str, Role], str] = {}
        self._groups: dict[str, GroupId] = {}
        self._wanted: dict[str, list[tuple[Offset, bytes]]] = {}
        self._behind: dict[str, Offset] = {}
        self.cells: dict[tuple[str, Role], Cell] = {}
        self._heard = Heard()

    def play(self) -> None:
        """Fill the topics, damage each, and record the results."""
        with self._heard:
            self._fill()
            self._harm()
            self._let_victim_lead()
            self._read("read")
            self._scrub()
            self._start_again()
            self._read("next start")
            self._judge()

    # ── before ───────────────────────────────────────────────────────────────────────────────

    def _fill(self) -> None:
        world = self._world
        wait(world, lambda: len(world.able()) == len(world.nodes))
        policy = {"cleanup.policy": "compact"} if self._is_compacted else {}
        number = 0
        for what in self._harms:
            for role in self._roles:
                name = self._names[what, role] = f"row-{number}"
                number += 1
                self._create(name, role, {"segment.bytes": "2048", **policy})
        wait(world, lambda: is_of_one_mind(world))
        for name in self._names.values():
            topic = broker_of(world, VICTIM).catalog.topics[name]
            self._groups[name] = group_of(topic, 0)
        for number in range(RECORDS):
            self._write_all(number)
        wait(world, lambda: is_of_one_mind(world))
        wait(world, self._is_settled)
        for name in self._names.values():
            self._wanted[name] = self._leader_reads(name)

    def _create(self, name: str, role: Role, settings: Mapping[str, str]) -> None:
        answers: list[KafkaesqueError | None] = []
        nodes = {Role.ALONE: [1], Role.LEADER: [1, 2, 3], Role.FOLLOWER: [2, 3, 1]}[role]

        def ask(broker: Broker) -> None:
            broker.create_topic(name, 1, settings, answers.append, assignment=[nodes])

        self._world.ask_broker(self._world.nodes[VICTIM], ask)
        wait(self._world, lambda: answers == [None])

    def _write_all(self, number: int) -> None:
        world = self._world
        outcomes: list[Outcome] = []
        # In a compacted topic a third of the records is superseded.
        key = b"same" if number % 3 == 0 else b"%d" % number
        record = Record(
            offset=0, timestamp_ms=world.clock.now_ms(), key=key, value=b"%d" % number + VALUE
        )
        for name, group in self._groups.items():
            wait(world, lambda at=group: world.leading(at) is not None)  # type: ignore[misc]
            leader = world.leading(group)
            assert leader is not None

            def ask(broker: Broker, name: str = name) -> None:
                batch = memoryview(bytearray(build_batch([record])))
                broker.partition(name, 0).append(batch, outcomes.append)

            world.ask_broker(world.nodes[leader.raft.node], ask)
        count = len(self._groups)
        wait(world, lambda: outcomes == [Outcome.COMMITTED] * count)

    def _is_settled(self) -> bool:
        """Whether every copy has its snapshots and its seals, and is compacted if it should be."""
        for machine in self._world.nodes.values():
            assert machine.broker is not None
            for group in self._groups.values():
                replica = machine.broker.replicas.by_group[group]
                names = machine.disk.list(group)
                bases = replica.log.segments.bases
                if self._is_compacted and replica.log.segments.compacted_to == 0:
                    return False
                if len(bases) < 5:
                    return False
                sealed = sum(bool(replica.log.segments.seals.of(base)) for base in bases[:-1])
                if not any(name.endswith(".snapshot") for name in names) or sealed < len(bases) - 1:
                    return False
        return True

    # ── damage ───────────────────────────────────────────────────────────────────────────────

    def _harm(self) -> None:
        machine = self._world.nodes[VICTIM]
        if self._moment is Moment.START:
            self._world.act(machine, machine.stop_cleanly)
        for (what, _), name in self._names.items():
            files = Files(disk=machine.disk, group=self._groups[name])
            self._behind[name] = int(files.segments()[3].rpartition("/")[2].removesuffix(".log"))
            self._harms[what](files)
        self._heard.phase = "start"
        if self._moment is Moment.START:
            self._start(machine)

    def _start(self, machine: BrokerNode) -> None:
        world = self._world
        world.start(machine)
        assert machine.is_up, "it does not start"
        wait(world, lambda: machine.is_ready)
        assert machine.is_up, "it started and stopped"

    def _let_victim_lead(self) -> None:
        """Wait until it leads its partitions again; meanwhile they may be compacted."""
        self._heard.phase = "read"
        led = [self._groups[name] for (_, role), name in self._names.items() if role is Role.LEADER]
        here = broker_of(self._world, VICTIM).replicas.by_group

        def is_led() -> bool:
            may = [here[group] for group in led if group in here and here[group].raft.may_lead]
            return all(one.is_serving or one.raft.is_recovering for one in may)

        self._world.run_until(is_led, MEND_STEPS_MAX)

    def _scrub(self) -> None:
        self._heard.phase = "scrub"
        scrub(self._world, self._world.nodes[VICTIM])

    def _start_again(self) -> None:
        self._heard.phase = "next start"
        machine = self._world.nodes[VICTIM]
        self._world.act(machine, machine.stop_cleanly)
        self._start(machine)
        self._world.run(2_000)

    # ── what consumers see ───────────────────────────────────────────────────────────────────

    def _leader_reads(self, name: str) -> list[tuple[Offset, bytes]]:
        leader = self._world.leading(self._groups[name])
        assert leader is not None
        broker = broker_of(self._world, leader.raft.node)
        end = broker.partition(name, 0).high_watermark
        return self._records(broker, name, 0, end)

    def _records(
        self, broker: Broker, name: str, first: Offset, end: Offset
    ) -> list[tuple[Offset, bytes]]:
        found: list[tuple[Offset, bytes]] = []
        offset = first
        while offset < end:  # ends: each turn moves on
            data = broker.partition(name, 0).read(offset, 1 << 10)
            views = list(split_batches(data))
            if not views:
                break
            found += [
                (one.offset, one.value or b"")
                for view in views
                for one in read_records(view)
                if one.offset >= offset
            ]
            offset = max(offset + 1, views[-1].end_offset)
        return found

    def _read(self, phase: str) -> None:
        self._heard.phase = phase
        for (what, role), name in self._names.items():
            cell = self.cells.setdefault((what, role), Cell())
            if role is Role.ALONE:
                self._read_alone(name, cell)
            else:
                self._read_cluster(name, cell)
        self._world.run(2_000)

    def _read_cluster(self, name: str, cell: Cell) -> None:
        """Read like a client that follows the leader; everything must be returned, in time."""
        world, wanted = self._world, self._wanted[name]
        offset, found = 0, list[tuple[Offset, bytes]]()
        end = wanted[-1][0] + 1
        for _ in range(READS_MAX):
            if offset >= end:
                break
            leader = world.leading(self._groups[name])
            if leader is None:
                world.run(20)
                continue
            try:
                broker = broker_of(world, leader.raft.node)
                data = broker.partition(name, 0).read(offset, 1)
            except (NotLeader, NotHere, PartitionOffline, LeaderNotReady):
                world.run(20)
                continue
            except KafkaesqueError as error:
                cell.faults.append(f"offset {offset}: {type(error).__name__}: {error}")
                return
            views = list(split_batches(data))
            found += [
                (one.offset, one.value or b"")
                for view in views
                for one in read_records(view)
                if one.offset >= offset
            ]
            offset = views[-1].end_offset if views else end
        if not self._is_right(found, wanted):
            cell.faults.append(f"{len(found)} of {len(wanted)} records as they were")

    def _is_right(
        self, found: list[tuple[Offset, bytes]], wanted: list[tuple[Offset, bytes]]
    ) -> bool:
        """Whether everything is there; compaction may have removed superseded records."""
        if not self._is_compacted:
            return found == wanted
        needed = [one for one in wanted if _is_needed(one[0])]
        return set(found) <= set(wanted) and [one for one in found if _is_needed(one[0])] == needed

    def _read_alone(self, name: str, cell: Cell) -> None:
        """Read at every offset: each read returns the right record or an error."""
        broker = broker_of(self._world, VICTIM)
        wanted = dict(self._wanted[name])
        lost: set[Offset] = set()
        for offset in range(max(wanted) + 1):
            try:
                data = broker.partition(name, 0).read(offset, 1)
            except PartitionOffline:
                lost.add(offset)
                continue
            except KafkaesqueError as error:
                cell.faults.append(f"offset {offset}: {type(error).__name__}: {error}")
                continue
            records = [one for view in split_batches(data) for one in read_records(view)]
            at = [one for one in records if one.offset >= offset]
            needed = self._following(wanted, offset)
            is_right = at and at[0].offset <= needed and at[0].value == wanted.get(at[0].offset)
            if not is_right:
                cell.faults.append(f"offset {offset}: something else was read")
        missing = lost.intersection(wanted)
        if missing and max(missing) >= self._behind[name]:
            cell.result = "offline for a person" if min(wanted) in missing else "error at the end"
        elif lost:
            cell.result = "error in the gap"

    def _following(self, wanted: Mapping[Offset, bytes], offset: Offset) -> Offset:
        """Return the record that a read at an offset must not skip."""
        kept = [one for one in wanted if not self._is_compacted or _is_needed(one)]
        return min(one for one in kept if one >= offset)

    # ── in the end ───────────────────────────────────────────────────────────────────────────

    def _judge(self) -> None:
        broker = broker_of(self._world, VICTIM)
        if self._roles != [Role.ALONE]:
            self._world.run_until(self._is_repaired, MEND_STEPS_MAX)
        for (what, role), name in self._names.items():
            cell, group = self.cells[what, role], self._groups[name]
            cell.noticed = self._heard.groups.get(group, "")
            if role is Role.FOLLOWER and cell.noticed == "read":
                cell.noticed = "scrub"  # or compaction: a follower has no readers
            if role is Role.ALONE:
                cell.result = cell.result or ("all is there" if cell.noticed else "harmless")
                if "error" in cell.result and not cell.noticed:
                    cell.faults.append("an error that was not noticed")
                continue
            replica = broker.replicas.by_group.get(group)
            if replica is None or replica.error is not None or replica.damage.found:
                cell.faults.append("it is not repaired in the end")
                continue
            if not cell.noticed:
                cell.result = "harmless"
            else:
                cell.result = "refilled" if group in self._heard.refilled else "mended"
            self._compare(name, group, cell)

    def _is_repaired(self) -> bool:
        broker = broker_of(self._world, VICTIM)
        here = broker.replicas.by_group
        return all(
            group in here and not here[group].damage.found and not here[group].raft.is_recovering
            for group in self._groups.values()
        )

    def _compare(self, name: str, group: GroupId, cell: Cell) -> None:
        """Check that the copy equals another broker's, byte for byte, and is complete.

        Each broker compacts on its own, so one may still have what another has dropped.
        """
        mine, others = (self._batches(node, group) for node in (VICTIM, 2))
        shared = mine.keys() & others.keys() if self._is_compacted else mine.keys() | others.keys()
        if any(mine.get(base) != others.get(base) for base in shared):
            cell.faults.append("its log is not that of the others")
        records = [
            (one.offset, one.value or b"")
            for data in mine.values()
            for view in split_batches(data)
            if not view.is_control
            for one in read_records(view)
        ]
        if not self._is_right(records, self._wanted[name]):
            cell.faults.append("its log is not what was written")

    def _batches(self, node: NodeId, group: GroupId) -> dict[Offset, bytes]:
        """Return the contents of a broker's copy, by base offset."""
        segments = broker_of(self._world, node).replicas.by_group[group].log.segments
        views = [view for base in segments.bases for view in segments.span(base)[0].batches()]
        found = {view.base_offset: bytes(view.data) for view in views}
        assert len(found) == len(views), "two batches have one offset"
        return found


def _is_needed(offset: Offset) -> bool:
    """Whether no later record has the key of the one at an offset."""
    return offset % 3 != 0 or offset + 3 >= RECORDS
