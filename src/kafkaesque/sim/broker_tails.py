"""Disks that silently lose the end of a log after calling it synced.

The journal on such a disk knows no more than the segments: recovery finds nothing wrong. Only the
leader, which counted the replica's acknowledgements, can detect it.
"""

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import MarksCut, SyncedTo
from kafkaesque.log.segment import LOG_SUFFIX, stem_of
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.record.view import split_batches
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import GroupId


class LosingTails:
    """Cuts the tails of logs in a world."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._chance = world.chance

    def happen(self) -> None:
        """Restart a follower without the end of its log, if all others have all of it."""
        places = [
            (machine, replica.group)
            for machine in self._world.able()
            for replica in self._followers(machine)
            if self._may_lose(machine, replica)
        ]
        if not places:
            return
        machine, group = self._chance.choice(places)
        machine.kill()
        if self.lose(machine, group):
            self._world.count("tails lost")
        self._world.start(machine)

    def _followers(self, machine: BrokerNode) -> list[Replica]:
        """Return the follower replicas of user topics; machines read their logs at once."""
        broker = machine.broker
        if broker is None:
            return []
        topics = [topic for topic in broker.catalog.topics.values() if not topic.is_internal]
        groups = [group_of(topic, index) for topic in topics for index in range(topic.partitions)]
        replicas = [broker.replicas.by_group.get(group) for group in groups]
        return [
            one
            for one in replicas
            if one is not None
            and one.error is None
            and one.raft.leader not in (None, machine.node)
            and one.high_watermark > one.log.start.first_offset
        ]

    def _may_lose(self, machine: BrokerNode, replica: Replica) -> bool:
        """Return whether two other voters hold, durably and with a vote, all that this one has."""
        others = [
            other
            for one in self._world.able()
            if one is not machine and one.broker is not None
            if (other := one.broker.replicas.by_group.get(replica.group)) is not None
        ]
        whole = [
            other
            for other in others
            if other.error is None
            and not other.raft.is_recovering
            and other.raft.node in replica.raft.voters.voters
            and other.raft.stable >= replica.raft.end
        ]
        return len(replica.raft.voters.voters) == 3 and len(whole) == 2

    def lose(self, machine: BrokerNode, group: GroupId) -> bool:
        """Cut some batches off the last segment, and everything the journal knew of them."""
        journal = Journal.open(machine.disk, self._world.settings.log)
        state = journal.groups[group]
        synced = state.synced
        if synced is None or state.is_reset or synced.position == 0:
            journal.close()
            return False
        file = machine.disk.open(stem_of(group, synced.segment_base) + LOG_SUFFIX)
        views = list(split_batches(file.read(0, synced.position)))
        kept = self._chance.randrange(len(views))
        end = views[kept].base_offset
        position = sum(view.size for view in views[:kept])
        if end < state.marks.start.offset:
            file.close()
            journal.close()
            return False
        file.truncate(position)
        machine.disk.sync_now([file], [])
        file.close()
        beyond = state.marks.first_beyond(end)
        if beyond is not None:
            journal.add(MarksCut(group=group, index=beyond))
        base = synced.segment_base
        journal.add(SyncedTo(group=group, segment_base=base, position=position, end_offset=end))
        journal.write_now()
        journal.close()
        return True
