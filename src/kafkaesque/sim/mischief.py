"""Injects faults at random times, of the kinds that the settings allow.

It stays within what a replicated log can survive: it destroys only a minority of the copies of
committed data at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from kafkaesque.ages import Ages
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.callbacks import ignore
from kafkaesque.entry import Voters
from kafkaesque.errors import DiskFull, LogError, RaftError
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.journal import Journal
from kafkaesque.log.segment import SEGMENT_NAME, SyncedPoint
from kafkaesque.log.steps import Step
from kafkaesque.raft.quorum import majority
from kafkaesque.sim.disk import SimDisk
from kafkaesque.sim.node import SimNode
from kafkaesque.sim.world import World
from kafkaesque.types import GroupId

_REVIVE_PAUSE = 80
_CUT_MAX = 600
_SLOW_SYNC_MAX = 300
_TOMBSTONE_MS = 200
_DONE = object()


class Mischief:
    """Repeatedly breaks a world until stopped."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance
        self._is_stopped = False
        self._begun: list[Iterator[Step]] = []
        """Kept alive so that the end of a process does not run what a dead process cannot."""
        self._compacting: set[Replica] = set()
        self._victim = world.chance.choice(list(world.nodes))
        faults: dict[str, Callable[[], None]] = {
            "kills": self._kill,
            "power_losses": self._lose_power,
            "cuts": self._cut,
            "transfers": self._transfer,
            "voter_changes": self._change_voters,
            "wipes": self._wipe,
            "bit_flips": self._flip_bit,
            "sync_failures": self._fail_sync,
            "full_disks": self._fill_disk,
            "slow_disks": self._slow_disk,
            "trims": self._trim,
            "compactions": self._compact,
        }
        self._faults = [faults[kind] for kind in world.settings.faults.kinds()]

    def begin(self) -> None:
        """Start to break things."""
        if self._world.settings.faults.compactions:
            for machine in self._up():
                for replica in list(machine.replicas.values()):
                    self._world.act(machine, partial(_allow_holes, machine, replica))
        self._world.schedule(_REVIVE_PAUSE, self._revive)
        if self._faults:
            self._world.schedule(self._pause(), self._happen)

    def stop(self) -> None:
        """Break nothing more."""
        self._is_stopped = True

    def _pause(self) -> int:
        return 1 + int(self._chance.expovariate(1 / self._world.settings.faults.pause_mean))

    def _happen(self) -> None:
        if self._is_stopped:
            return
        self._world.schedule(self._pause(), self._happen)
        self._chance.choice(self._faults)()

    def _revive(self) -> None:
        """Restart nodes after a while, whatever took them down."""
        if self._is_stopped:
            return
        self._world.schedule(1 + self._chance.randrange(_REVIVE_PAUSE), self._revive)
        for machine in list(self._world.nodes.values()):
            if not machine.is_up and self._chance.random() < 0.5:
                self._world.start(machine)

    def _up(self) -> list[SimNode]:
        return [machine for machine in self._world.nodes.values() if machine.is_up]

    def _some_replica(self) -> tuple[SimNode, Replica] | None:
        machines = [machine for machine in self._up() if machine.replicas]
        if not machines:
            return None
        machine = self._chance.choice(machines)
        return machine, self._chance.choice(list(machine.replicas.values()))

    def _some_leader(self) -> Replica | None:
        group = self._chance.choice(list(self._world.checks))
        return self._world.leader(group)

    # ── processes and machines ───────────────────────────────────────────────────────────────

    def _kill(self) -> None:
        for machine in self._some_nodes():
            if self._chance.random() < 0.3:
                self._world.count("clean stops")
                self._world.act(machine, machine.stop_cleanly)
            else:
                self._world.count("kills")
                machine.kill()

    def _lose_power(self) -> None:
        if self._world.is_forgetful:
            machine = self._chance.choice(self._up() or list(self._world.nodes.values()))
            if self._may_forget(machine):
                self._world.count("power losses that may take something")
                machine.lose_power()
            return
        for machine in self._some_nodes():
            if self._chance.random() < 0.5:
                self._world.count("power losses")
                machine.lose_power()
            else:  # in the middle of one of its next writes
                operation = machine.disk.operations + 1 + self._chance.randrange(30)
                machine.disk.crash_after = operation

    def _may_forget(self, machine: SimNode) -> bool:
        """Return whether a majority of every group's voters has everything committed without it."""
        for group, checks in self._world.checks.items():
            voters = [node for node in self._world.nodes if node != machine.node]
            holders = [node for node in voters if self._has_all(node, group)]
            if checks.committed_end == 0 or len(holders) < majority(len(self._world.nodes)):
                return False
        return True

    def _has_all(self, node: int, group: GroupId) -> bool:
        replica = self._world.nodes[node].replicas.get(group)
        end, term = self._world.checks[group].last_committed()
        if replica is None or replica.raft.is_recovering or replica.raft.stable < end:
            return False
        return replica.log.start.index >= end or replica.log.term_at(end - 1) == term

    def _some_nodes(self) -> list[SimNode]:
        """Return usually one node, sometimes several, sometimes all."""
        up = self._up()
        if not up:
            return []
        count = self._chance.choice([1, 1, 1, 2, len(up)])
        return self._chance.sample(up, min(count, len(up)))

    # ── network ──────────────────────────────────────────────────────────────────────────────

    def _cut(self) -> None:
        world = self._world
        nodes = list(world.nodes)
        side = self._chance.sample(nodes, self._chance.randrange(len(nodes)))
        is_one_way = self._chance.random() < 0.3
        for one in side:
            for other in nodes:
                if other not in side:
                    world.network.cut(one, other)
                    if not is_one_way:
                        world.network.cut(other, one)
        world.count("cuts")
        world.schedule(1 + self._chance.randrange(_CUT_MAX), world.network.heal)

    # ── Raft operations ──────────────────────────────────────────────────────────────────────

    def _transfer(self) -> None:
        leader = self._some_leader()
        if leader is None:
            return
        target = self._chance.choice(list(self._world.nodes))
        self._try("transfers", leader, partial(leader.transfer, target))

    def _change_voters(self) -> None:
        leader = self._some_leader()
        if leader is None:
            return
        change = self._some_change(leader.raft.voters)
        self._try("voter changes", leader, lambda: leader.change_voters(change, ignore))

    def _some_change(self, now: Voters) -> Voters:
        voters, learners = set(now.voters), set(now.learners)
        gone = [node for node in now.members if node not in self._world.nodes]
        outside = [node for node in self._world.nodes if node not in now.members]
        if gone and gone[0] in voters and len(voters) > 2:
            voters.discard(gone[0])  # a wiped machine makes room
        elif learners and self._chance.random() < 0.5:
            node = self._chance.choice(sorted(learners))
            learners.discard(node)
            if node in self._world.nodes:
                voters.add(node)
        elif outside:
            node = self._chance.choice(outside)
            (learners if self._chance.random() < 0.7 else voters).add(node)
        elif len(voters) > 1 and not self._world.settings.faults.wipes:
            voters.discard(self._chance.choice(sorted(voters)))
        return Voters(voters=tuple(sorted(voters)), learners=tuple(sorted(learners)))

    def _try(self, kind: str, leader: Replica, action: Callable[[], object]) -> None:
        machine = self._world.nodes[leader.raft.node]

        def do() -> None:
            action()
            machine.after_event()

        try:
            self._world.act(machine, do)
            self._world.count(kind)
        except RaftError:
            self._world.count("refused")

    # ── disks ────────────────────────────────────────────────────────────────────────────────

    def _wipe(self) -> None:
        """Replace a machine whose disk failed by an empty one with a new node id."""
        world = self._world
        machine = self._chance.choice(list(world.nodes.values()))
        if not self._is_expendable(machine):
            return
        world.count("wipes")
        if machine.is_up:
            machine.kill()
        del world.nodes[machine.node]
        world.add_node(world.next_node())

    def _flip_bit(self) -> None:
        """Flip a synced bit on the one damaged machine, or lose a file."""
        world = self._world
        machine = world.nodes[self._victim]
        if not machine.is_up or not self._is_expendable(machine):
            return
        machine.kill()
        # The journal on disk determines what is synced, not the process's memory.
        journal = Journal.open(machine.disk, world.settings.log)
        journal.close()
        synced = [
            (group, state.synced)
            for group, state in journal.groups.items()
            if state.synced is not None and not state.is_reset
        ]
        places = [place for group, point in synced for place in _places(machine.disk, group, point)]
        if not places:
            return
        path, size, is_closed = self._chance.choice(places)
        world.damaged.add(machine.node)
        if is_closed and self._chance.random() < 0.5:
            world.count("segments lost")
            _lose_segment(machine.disk, path, self._chance.choice([0, size // 2, None]))
        else:
            world.count("bits flipped")
            machine.disk.flip_bit(path, self._chance.randrange(size), self._chance.randrange(8))

    def _is_expendable(self, machine: SimNode) -> bool:
        """Return whether, in every group, a majority holds all committed data without it."""
        world = self._world
        for group, checks in world.checks.items():
            leader = world.leader(group)
            if leader is None or leader.raft.voters_index >= leader.raft.commit:
                return False
            voters = leader.raft.voters.voters
            if any(node not in world.nodes for node in voters):
                return False
            holders = [n for n in voters if n != machine.node and self._holds(n, group)]
            if checks.committed_end == 0 or len(holders) < majority(len(voters)):
                return False
        return True

    def _holds(self, node: int, group: GroupId) -> bool:
        replica = self._world.nodes[node].replicas.get(group)
        if replica is None or replica.raft.is_recovering:
            return False
        end = self._world.checks[group].committed_end
        return replica.raft.commit == end and replica.raft.stable >= end

    def _fail_sync(self) -> None:
        for machine in self._some_nodes()[:1]:
            self._world.count("sync failures")
            machine.disk.fail_next_sync()

    def _fill_disk(self) -> None:
        for machine in self._some_nodes()[:1]:
            self._world.count("full disks")
            room = machine.disk.used_bytes + self._chance.randrange(2000)
            machine.disk.faults = replace(self._world.settings.disk, full_at_bytes=room)
            self._world.schedule(self._chance.randrange(_CUT_MAX), partial(self._good, machine))

    def _slow_disk(self) -> None:
        for machine in self._some_nodes()[:1]:
            self._world.count("slow disks")
            machine.disk.faults = replace(self._world.settings.disk, sync_delay_max=_SLOW_SYNC_MAX)
            self._world.schedule(self._chance.randrange(_CUT_MAX), partial(self._good, machine))

    def _good(self, machine: SimNode) -> None:
        machine.disk.faults = self._world.settings.disk

    # ── housekeeping of the log ──────────────────────────────────────────────────────────────

    def _trim(self) -> None:
        found = self._some_replica()
        if found is None:
            return
        machine, replica = found
        first = replica.log.start.first_offset
        last = self._settled_offset(replica)
        if last > first:
            offset = first + 1 + self._chance.randrange(last - first)
            self._world.count("trims")
            self._world.act(machine, partial(_trim, machine, replica, offset))

    def _compact(self) -> None:
        found = self._some_replica()
        if found is None:
            return
        machine, replica = found
        if replica in self._compacting:
            return
        self._world.act(machine, partial(_allow_holes, machine, replica))
        if not machine.is_up:
            return
        below = min(self._settled_offset(replica), replica.log.compactable_below)
        self._world.checks[replica.group].is_compacted = True
        self._world.count("compactions")
        rules = CompactionRules(delete_retention_ms=_TOMBSTONE_MS)
        ages = Ages(now_ms=self._world.clock.now_ms())
        work = compact(replica.log.segments, below=below, ages=ages, rules=rules)
        self._begun.append(work)
        self._compacting.add(replica)
        self._world.schedule(1, partial(self._compact_on, machine, replica, work))

    def _compact_on(self, machine: SimNode, replica: Replica, work: Iterator[Step]) -> None:
        """Run a slice of a compaction, and schedule the next while the process runs."""
        if machine.replicas.get(replica.group) is not replica:
            return
        is_done: list[bool] = []

        def run_slice() -> None:
            try:
                is_done.append(next(work, _DONE) is _DONE)
            except DiskFull:
                is_done.append(True)  # the compaction is abandoned; another one comes later
            except LogError as error:
                replica.stop(error)
            machine.after_event()

        self._world.act(machine, run_slice)
        if is_done == [False]:
            self._world.schedule(1, partial(self._compact_on, machine, replica, work))
        else:
            self._compacting.discard(replica)

    def _settled_offset(self, replica: Replica) -> int:
        settled = min(replica.raft.commit, replica.log.stable)
        return replica.log.offset_at(max(settled, replica.log.start.index))


def _places(disk: SimDisk, group: GroupId, synced: SyncedPoint) -> list[tuple[str, int, bool]]:
    """Return the segments with synced bytes, how many, and whether they are closed."""
    found = []
    for name in disk.list(group):
        path = f"{group}/{name}"
        if not name.endswith(".log") or int(name[:20]) > synced.segment_base:
            continue
        is_closed = int(name[:20]) < synced.segment_base
        size = disk.open(path).size() if is_closed else synced.position
        if size > 0:
            found.append((path, size, is_closed))
    return found


def _lose_segment(disk: SimDisk, path: str, size: int | None) -> None:
    """Cut a segment short; without a size, remove it with its indexes."""
    file = disk.open(path)
    if size is not None:
        file.truncate(size)
        disk.sync_now([file], [])
        return
    folder, _, name = path.rpartition("/")
    for other in disk.list(folder):
        if other.startswith(name[:20]) and SEGMENT_NAME.fullmatch(other):
            disk.remove(f"{folder}/{other}")
    disk.sync_now([], [folder])


def _trim(machine: SimNode, replica: Replica, offset: int) -> None:
    replica.log.trim(offset)
    machine.after_event()


def _allow_holes(machine: SimNode, replica: Replica) -> None:
    replica.log.allow_holes()
    machine.after_event()
