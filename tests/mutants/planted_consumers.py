"""Planted bugs in groups whose coordinator assigns; the model of these is to notice them."""

from tests.mutants.mutation import Mutant

_GROUP = "kafkaesque.machines.groups.consumer_group:ConsumerGroup"
_RECONCILED = "kafkaesque.machines.groups.consumer_group:reconciled"

CONSUMER_MUTANTS = (
    Mutant(
        name="a partition is given on before its reader has let it go",
        target=f"{_GROUP}._is_free",
        old="not owner.holds(place)",
        new="True",
    ),
    Mutant(
        name="one who is told to let go is taken to have done so",
        target=_RECONCILED,
        old="if owned is None or owned & member.revoking:",
        new="if False:",
    ),
    Mutant(
        name="everything is taken before anything is given",
        target=_RECONCILED,
        old="return replace(member, assigned=kept, revoking=lost)",
        new="return replace(member, assigned=NOTHING, revoking=member.assigned)",
    ),
    Mutant(
        name="an epoch that is over commits",
        target=f"{_GROUP}.check_epoch",
        old="if epoch != member.epoch:",
        new="if epoch > member.epoch:",
    ),
    Mutant(
        name="topics that change are not noticed",
        target=f"{_GROUP}._is_outdated",
        old="return not self._finder.is_seen(topics) and",
        new="return False and",
    ),
    Mutant(
        name="who falls silent stays",
        target=f"{_GROUP}.tick",
        old="if gone or",
        new="if",
    ),
    Mutant(
        name="what a member wants anew is not heeded",
        target=f"{_GROUP}._advance",
        old="member.wishes != before.wishes",
        new="False",
    ),
)
