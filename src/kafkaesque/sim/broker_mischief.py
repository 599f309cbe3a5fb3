"""Repeatedly breaks a cluster of brokers, within what a replicated log can survive."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.storage.identity import FolderIdentity
from kafkaesque.broker.storage.salvage import rejoin
from kafkaesque.errors import KafkaesqueError
from kafkaesque.log.journal import PATH as JOURNAL
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import OldCopyFound
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_rot import Rotting
from kafkaesque.sim.broker_tails import LosingTails
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.inode import Folder
from kafkaesque.topic_settings import resolve
from kafkaesque.types import NodeId

_REVIVE_PAUSE = 150
_CHANGE_PAUSE = 80
_CUT_MAX = 600
_PAUSE_MAX = 500
_SLOW_SYNC_MAX = 200
_AHEAD_MS = (2_000, 3600_000, 30 * 24 * 3600_000, -2_000, -3600_000)
"""Errors of a wrong clock; a month is longer than any retention."""


class BrokerMischief:
    """Breaks a world until stopped."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._chance = world.chance
        self._is_stopped = False
        self._images: dict[NodeId, dict[str, Folder]] = {}
        self.rotting = Rotting(world)
        faults: dict[str, Callable[[], None]] = {
            "kills": self._kill,
            "power_losses": self._lose_power,
            "cuts": self._cut,
            "pauses": self._pause,
            "slow_disks": self._slow_disk,
            "sync_failures": self._fail_sync,
            "clocks": self._set_clock,
            "copies": self._copy,
            "journals": self._lose_journal,
            "rot": self.rotting.happen,
            "tails": LosingTails(world).happen,
        }
        kinds = world.settings.faults
        self._faults = [faults[kind] for kind in kinds if kind in faults]
        changes: dict[str, Callable[[Broker], None]] = {"moves": self._move, "drains": self._drain}
        self._changes = [changes[kind] for kind in kinds if kind in changes]

    def begin(self) -> None:
        """Start to break things."""
        self._world.schedule(_REVIVE_PAUSE, self._revive)
        if self._faults:
            self._world.schedule(self._wait(), self._happen)
        if self._changes:
            self._world.schedule(_CHANGE_PAUSE, self._change)

    def stop(self) -> None:
        """Break nothing more."""
        self._is_stopped = True

    def _wait(self) -> int:
        return 1 + int(self._chance.expovariate(1 / self._world.settings.pause_mean))

    def _happen(self) -> None:
        if not self._is_stopped:
            self._world.schedule(self._wait(), self._happen)
            self._chance.choice(self._faults)()

    def _revive(self) -> None:
        if self._is_stopped:
            return
        self._world.schedule(1 + self._chance.randrange(_REVIVE_PAUSE), self._revive)
        for machine in self._world.nodes.values():
            if not machine.is_up and not machine.is_late and self._chance.random() < 0.5:
                self._world.start(machine)

    def _some(self) -> list[BrokerNode]:
        """Return usually one node, sometimes several, sometimes all."""
        up = [machine for machine in self._world.nodes.values() if machine.is_up]
        count = self._chance.choice([1, 1, 1, 2, len(up)])
        return self._chance.sample(up, min(count, len(up)))

    def _kill(self) -> None:
        for machine in self._some():
            if self._chance.random() < 0.3 and not self._world.is_paused(machine):
                self._stop(machine)
            else:
                self._world.count("kills")
                machine.kill()
                if self._chance.random() < 0.5:
                    self._suspect(machine)

    def _stop(self, machine: BrokerNode) -> None:
        """Stop a broker cleanly, usually after it has handed over its leaderships."""
        world, broker, life = self._world, machine.broker, machine.life

        def stop() -> None:
            if machine.broker is not None and machine.life == life:
                world.count("clean stops")
                world.act(machine, machine.stop_cleanly)

        if broker is None or self._chance.random() < 0.3:
            stop()
        else:
            world.act(machine, lambda: broker.hand_over(lambda: world.schedule(0, stop)))

    def _suspect(self, machine: BrokerNode) -> None:
        """Let the others find that nothing listens there any more; sometimes they are wrong."""
        for other in self._world.nodes.values():
            broker = other.broker
            if broker is not None and other is not machine and not self._world.is_paused(other):
                self._world.count("suspicions")
                self._world.act(other, partial(broker.suspect, machine.node))

    def _lose_power(self) -> None:
        for machine in self._some():
            if self._chance.random() < 0.5:
                self._world.count("power losses")
                machine.lose_power()
            else:  # in the middle of one of its next writes
                operation = machine.disk.operations + 1 + self._chance.randrange(30)
                machine.disk.crash_after = operation

    def _cut(self) -> None:
        network, nodes = self._world.network, list(self._world.nodes)
        side = self._chance.sample(nodes, self._chance.randrange(len(nodes)))
        is_one_way = self._chance.random() < 0.3
        for one in side:
            for other in nodes:
                if other not in side:
                    network.cut(one, other)
                    if not is_one_way:
                        network.cut(other, one)
        self._world.count("cuts")
        self._world.schedule(1 + self._chance.randrange(_CUT_MAX), network.heal)

    def _pause(self) -> None:
        for machine in self._some()[:2]:
            self._world.count("pauses")
            if self._chance.random() < 0.2:
                self._suspect(machine)
            machine.paused_until = self._world.clock.time + self._chance.randrange(_PAUSE_MAX)

    def _set_clock(self) -> None:
        """Set a clock right or wrong; most clocks of a cluster are right at any time."""
        nodes = list(self._world.nodes.values())
        machine = self._chance.choice(nodes)
        wrong = [one for one in nodes if one.clock.ahead_ms and one is not machine]
        machine.clock.ahead_ms = 0
        if 2 * (len(wrong) + 1) < len(nodes) and self._chance.random() < 0.8:
            machine.clock.ahead_ms = self._chance.choice(_AHEAD_MS)
            self._world.count("clocks set wrong")

    def _copy(self) -> None:
        """Make an image of a disk, or restore one, if the others have everything acknowledged.

        Its detection by a peer is recorded at once: the others cannot notice a vote that a copy
        gives before that (`docs/explanation/cluster.md`).
        """
        machine = self._chance.choice(list(self._world.nodes.values()))
        is_calm = len(self._world.able()) == len(self._world.nodes)
        if machine.broker is None or not is_calm or not _is_minority(machine.broker):
            return
        image = self._images.pop(machine.node, None)
        if image is None:
            self._images[machine.node] = machine.disk.image()
            return
        whole = self._whole_others(machine, machine.broker)
        if whole is None:
            return
        peer = self._chance.choice(whole)
        machine.lose_power()
        newest = Journal.open(machine.disk, self._world.settings.log)
        machine.disk.restore(image)
        journal = Journal.open(machine.disk, self._world.settings.log)
        journal.add(
            OldCopyFound(
                group="",
                peer=peer.node,
                run=newest.run,
                round=newest.durable_round,
                term=peer.replicas.by_group[CATALOG_GROUP].raft.term,
            )
        )
        journal.write_now()
        self._world.count("images restored")

    def _whole_others(self, machine: BrokerNode, broker: Broker) -> list[Broker] | None:
        """Return the other brokers, if each has everything that this one has."""
        others = [one.broker for one in self._world.nodes.values() if one is not machine]
        whole = [one for one in others if one is not None and _has_all(one, broker)]
        return whole if len(whole) == len(others) else None

    def _lose_journal(self) -> None:
        """Damage a journal beyond use, if the others can do without its broker; it rejoins."""
        machine = self._chance.choice(list(self._world.nodes.values()))
        is_calm = len(self._world.able()) == len(self._world.nodes)
        if machine.broker is None or not is_calm or not _is_minority(machine.broker):
            return
        whole = self._whole_others(machine, machine.broker)
        if whole is None:
            return
        told = [one.remembered(machine.node) for one in whole]
        machine.lose_power()
        disk, node = machine.disk, machine.node
        if self._chance.random() < 0.5:
            disk.remove(JOURNAL)
        else:
            file = disk.open(JOURNAL)
            file.write(0, b"\xff" * file.size())
        folder = FolderIdentity(
            cluster="", node=node, directory=b"", is_founder=False, has_begun=True
        )
        rejoin(disk, self._world.settings.log, folder, told)
        self._world.count("journals lost")

    # ── concurrent administration ────────────────────────────────────────────────────────────

    def _change(self) -> None:
        if self._is_stopped:
            return
        self._world.schedule(1 + self._chance.randrange(2 * _CHANGE_PAUSE), self._change)
        able = self._world.able()
        if able:
            with suppress(KafkaesqueError):
                machine = self._chance.choice(able)
                self._world.ask_broker(machine, self._chance.choice(self._changes))

    def _move(self, broker: Broker) -> None:
        """Move some partitions of a topic, maybe elsewhere than before, or cancel moves."""
        topics = list(broker.catalog.topics.values())
        moving = [topic for topic in topics if topic.moves]
        if not topics:
            return
        topic = self._chance.choice(moving or topics)
        moves = [
            (topic.topic_id, index, self._target(topic, index))
            for index in range(topic.partitions)
            if self._chance.random() < 0.5
        ]
        broker.move_partitions(moves, partial(self._told, "moves begun"))

    def _target(self, topic: Topic, index: int) -> Sequence[NodeId]:
        if index in topic.moves and self._chance.random() < 0.4:
            self._world.count("moves called off")
            return ()
        nodes = list(self._world.nodes)
        # With fewer replicas than its min.insync.replicas a partition would never accept a write
        # again.
        fewest = resolve(topic.settings).min_insync_replicas
        count = max(fewest, self._chance.choice([1, 2, 3, 3, len(nodes)]))
        return self._chance.sample(nodes, min(count, len(nodes)))

    def _drain(self, broker: Broker) -> None:
        node = self._chance.choice(list(self._world.nodes))
        is_draining = self._chance.random() < 0.15
        broker.drain_broker(node, partial(self._told, "drains"), is_draining=is_draining)

    def _told(self, kind: str, error: KafkaesqueError | None) -> None:
        self._world.count(kind if error is None else f"{kind}: {type(error).__name__}")

    # ── faults of disks ──────────────────────────────────────────────────────────────────────

    def _fail_sync(self) -> None:
        for machine in self._some()[:1]:
            self._world.count("sync failures")
            machine.disk.fail_next_sync()

    def _slow_disk(self) -> None:
        for machine in self._some()[:1]:
            self._world.count("slow disks")
            disk = self._world.settings.disk
            machine.disk.faults = replace(disk, sync_delay_max=_SLOW_SYNC_MAX)
            delay = self._chance.randrange(_CUT_MAX)
            self._world.schedule(delay, partial(machine.disk.mend, disk))


def _is_minority(broker: Broker) -> bool:
    """Return whether a broker's groups can do without its votes until it is refilled."""
    replicas = broker.replicas.by_group.values()
    return all(len(replica.raft.voters.voters) > 2 for replica in replicas)


def _has_all(broker: Broker, other: Broker) -> bool:
    """Return whether a broker holds, durably and voting, all that another has committed."""
    mine = broker.replicas.by_group
    return all(
        group in mine
        and not mine[group].raft.is_recovering
        and mine[group].raft.stable >= replica.raft.commit
        for group, replica in other.replicas.by_group.items()
    )
