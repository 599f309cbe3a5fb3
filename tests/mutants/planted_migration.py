"""Planted bugs in groups that change their kind; the tests of these are to notice them."""

from tests.mutants.mutation import Mutant

_MIXED = "kafkaesque.machines.groups.mixed_group:MixedGroup"
_UPGRADED = "kafkaesque.machines.groups.groups:upgraded"

MIGRATION_MUTANTS = (
    Mutant(
        name="what classic members read is free after an upgrade",
        target=_UPGRADED,
        old="_upgraded(group.members[saved.member_id], places,",
        new="_upgraded(group.members[saved.member_id], frozenset(),",
    ),
    Mutant(
        name="a classic member is taken to have let go of everything when it joins",
        target=f"{_MIXED}.join",
        old="owned = known_places(said.owned, command.topics)",
        new="owned = frozenset()",
    ),
    Mutant(
        name="classic members are told nothing of what has changed",
        target=f"{_MIXED}._has_news",
        old="if member.epoch < self.epoch or member.revoking:",
        new="if False:",
    ),
    Mutant(
        name="a group of classic members stays what it was",
        target="kafkaesque.machines.groups.consumer_group:ConsumerGroup._remove",
        old="if self._is_classic_now(draft.members):",
        new="if False:",
    ),
    Mutant(
        name="a classic member is told what it is to read and not what it may",
        target=f"{_MIXED}.sync",
        old="named_assignment(member.assigned,",
        new="named_assignment(member.target,",
    ),
    Mutant(
        name="nobody is asked to join after a downgrade",
        target="kafkaesque.machines.groups.group_life:GroupLife.tick",
        old="if overdue or not is_led:",
        new="if overdue:",
    ),
)
