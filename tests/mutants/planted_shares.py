"""Planted bugs in share groups: the model of these is to notice the first, other tests the rest."""

from tests.mutants.mutation import Mutant

_GROUP = "kafkaesque.machines.groups.share_group:ShareGroup"
_GROUPS = "kafkaesque.machines.groups.groups:Groups"
_ASSIGNOR = "kafkaesque.machines.groups.share_assignor"
_STATES = "kafkaesque.machines.queues.share_states"
_PARTITION = "kafkaesque.broker.queues.partition_shares"
_SERVER = "kafkaesque.server"

SHARE_MUTANTS = (
    Mutant(
        name="a member that missed what it is to read is not told again",
        target=f"{_GROUP}.heartbeat",
        old="command.epoch in (JOINING, before.previous_epoch)",
        new="command.epoch == JOINING",
    ),
    Mutant(
        name="a member that missed its new epoch is fenced",
        target="kafkaesque.machines.groups.share_group:_check_epoch",
        old="member.epoch, member.previous_epoch)",
        new="member.epoch)",
    ),
    Mutant(
        name="a member of a share group may be in any old epoch",
        target="kafkaesque.machines.groups.share_group:_check_epoch",
        old="command.epoch not in (JOINING, member.epoch, member.previous_epoch)",
        new="command.epoch > member.epoch",
    ),
    Mutant(
        name="a share group does not notice that topics change",
        target=f"{_GROUP}.heartbeat",
        old="self._seen is not command.topics.mark",
        new="self._seen is None",
    ),
    Mutant(
        name="a member of a share group that falls silent stays",
        target=f"{_GROUP}.tick",
        old="if gone:",
        new="if False:",
    ),
    Mutant(
        name="a member of a share group cannot change what it wants",
        target=f"{_GROUP}.heartbeat",
        old="member.names != before.names",
        new="False",
    ),
    Mutant(
        name="a share group forgets what those who left were reading",
        target=f"{_GROUP}._remove",
        old="out.records += member_records(self.name, self.members, plan.members.values())",
        new="pass",
    ),
    Mutant(
        name="a share group cut short by a crash is taken for whole",
        target=f"{_GROUP}._planned",
        old="is_same and plan.members == members",
        new="is_same",
    ),
    Mutant(
        name="a member of a share group stays with what it had",
        target="kafkaesque.machines.groups.share_member:ShareMember.entered",
        old=", assigned=self.target",
        new="",
    ),
    Mutant(
        name="those for whom nothing is left read nothing",
        target=f"{_ASSIGNOR}:assign_shared",
        old="_join_in(shares, ordered, topics)",
        new="pass",
    ),
)
"""Noticed by tests/machines/test_share_group_model.py."""

SHARE_KIND_MUTANTS = (
    Mutant(
        name="offsets are committed to a share group",
        target=f"{_GROUPS}._readers",
        old="isinstance(group, ShareGroup)",
        new="False",
    ),
    Mutant(
        name="a group that is about to have offsets becomes a share group",
        target=f"{_GROUPS}._check_no_readers",
        old="or self._pending.places_of(name)",
        new="",
    ),
    Mutant(
        name="a share group without members is forgotten in time",
        target=f"{_GROUPS}.expire",
        old="isinstance(group, ShareGroup) or not group.is_idle",
        new="not group.is_idle",
    ),
    Mutant(
        name="members move when others share their partition",
        target=f"{_ASSIGNOR}:assign_shared",
        old="is_alike and 0 < len(places) < len(ordered)",
        new="False",
    ),
    Mutant(
        name="members gather on few partitions when topics differ",
        target=f"{_ASSIGNOR}:_join_in",
        old="readers[place] > readers[least] + 1",
        new="False",
    ),
)

SHARE_ADMIN_MUTANTS = (
    Mutant(
        name="a leader goes on with a share group that was deleted",
        target=f"{_STATES}:ShareStates.write",
        old="known is None and group not in command.opens",
        new="False",
    ),
    Mutant(
        name="a share group that is deleted and set again has the generation it had",
        target=f"{_STATES}:ShareStates.set_start",
        old="generation=now.wall_ms",
        new="generation=1",
    ),
    Mutant(
        name="what is done below the start counts twice",
        target=f"{_STATES}:_done_above",
        old=">> below",
        new=">> 0",
    ),
    Mutant(
        name="the start of a share group is deleted first",
        target=f"{_STATES}:_tombstones",
        old="    start = to_record(StartKey(*place, name), None)\n",
        new="    start = to_record(StartKey(*place, name), None)\n    yield start\n",
    ),
    Mutant(
        name="a leader does not look at what administrators did when a member comes",
        target="kafkaesque.broker.queues.broker_shares:BrokerShares.came",
        old="shares.look_again(group)",
        new="pass",
    ),
    Mutant(
        name="a share group that was deleted and opened again passes for the one that is known",
        target=f"{_PARTITION}:_is_same",
        old="(known.generation, known.opened_ms) == (found.generation, found.opened_ms)",
        new="known.generation == found.generation",
    ),
    Mutant(
        name="share groups of a deleted topic are kept",
        target=f"{_PARTITION}:PartitionShares.is_current",
        old="and self.partition.replica.is_serving",
        new="",
    ),
    Mutant(
        name="a start is set without the leader's term",
        target=f"{_SERVER}.answers.share_state:_adopted",
        old="answer = await _asked(session, states, index, command)",
        new="answer = None",
    ),
    Mutant(
        name="a share group with members loses its offsets",
        target=f"{_SERVER}.answers.share_state:check_is_empty",
        old="group.shares is not None and group.shares.members",
        new="False",
    ),
    Mutant(
        name="a share group is deleted without its state",
        target=f"{_SERVER}.handlers.delete_groups:_delete_shares",
        old="await delete_state(session, name, None)",
        new="pass",
    ),
)
"""Noticed by tests/machines/test_share_states.py, tests/broker/test_partition_shares.py and
tests/server/test_share_administration.py."""
