"""Planted bugs in groups that change their protocol; their tests should notice."""

from tests.mutants.mutation import Mutant

_MIXED = "kafkaesque.machines.groups.mixed_group:MixedGroup"
_UPGRADED = "kafkaesque.machines.groups.groups:upgraded"

MIGRATION_MUTANTS = (
    Mutant(
        name="classic members' partitions are free after an upgrade",
        target=_UPGRADED,
        old="_upgraded(group.members[saved.member_id], places,",
        new="_upgraded(group.members[saved.member_id], frozenset(),",
    ),
    Mutant(
        name="a joining classic member counts as having revoked everything",
        target=f"{_MIXED}.join",
        old="owned = known_places(said.owned, command.topics)",
        new="owned = frozenset()",
    ),
    Mutant(
        name="classic members are not asked to rebalance",
        target=f"{_MIXED}._has_news",
        old="if member.epoch < self.epoch or member.revoking:",
        new="if False:",
    ),
    Mutant(
        name="a group with only classic members is not downgraded",
        target="kafkaesque.machines.groups.consumer_group:ConsumerGroup._remove",
        old="if self._is_classic_now(draft.members):",
        new="if False:",
    ),
    Mutant(
        name="a classic member gets its target instead of its current assignment",
        target=f"{_MIXED}.sync",
        old="named_assignment(member.assigned,",
        new="named_assignment(member.target,",
    ),
    Mutant(
        name="members are not asked to rejoin after a downgrade",
        target="kafkaesque.machines.groups.group_life:GroupLife.tick",
        old="if overdue or not is_led:",
        new="if overdue:",
    ),
)
