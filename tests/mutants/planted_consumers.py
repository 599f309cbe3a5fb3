"""Planted bugs in groups whose coordinator assigns; the model of these should notice."""

from tests.mutants.mutation import Mutant

_GROUP = "kafkaesque.machines.groups.consumer_group:ConsumerGroup"
_RECONCILED = "kafkaesque.machines.groups.consumer_group:reconciled"

CONSUMER_MUTANTS = (
    Mutant(
        name="a partition is reassigned before its reader has revoked it",
        target=f"{_GROUP}._is_free",
        old="not owner.holds(place)",
        new="True",
    ),
    Mutant(
        name="a member asked to revoke a partition counts as having done so",
        target=_RECONCILED,
        old="if owned is None or owned & member.revoking:",
        new="if False:",
    ),
    Mutant(
        name="all partitions are revoked before any is assigned",
        target=_RECONCILED,
        old="return replace(member, assigned=kept, revoking=lost)",
        new="return replace(member, assigned=NOTHING, revoking=member.assigned)",
    ),
    Mutant(
        name="a stale epoch may commit offsets",
        target=f"{_GROUP}.check_epoch",
        old="if epoch != member.epoch:",
        new="if epoch > member.epoch:",
    ),
    Mutant(
        name="changed topics are not noticed",
        target=f"{_GROUP}._is_outdated",
        old="return not self._finder.is_seen(topics) and",
        new="return False and",
    ),
    Mutant(
        name="a silent member is not removed",
        target=f"{_GROUP}.tick",
        old="if gone or",
        new="if",
    ),
    Mutant(
        name="a member's new subscription is ignored",
        target=f"{_GROUP}._advance",
        old="member.wishes != before.wishes",
        new="False",
    ),
)
