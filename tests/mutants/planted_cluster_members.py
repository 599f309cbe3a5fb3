"""Planted bugs in groups whose coordinator assigns, over several brokers; for seeds."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_GROUP = "kafkaesque.machines.groups.consumer_group:ConsumerGroup"

CLUSTER_MEMBER_MUTANTS = (
    Mutant(
        name="a coordinator reassigns a partition before its reader has revoked it",
        target=f"{_GROUP}._is_free",
        old="not owner.holds(place)",
        new="True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the epoch does not rise when a member leaves",
        target="kafkaesque.machines.groups.consumer_draft:Draft.retarget",
        old="epoch=self.epoch + 1",
        new="epoch=self.epoch + (len(self.members) >= len(self._before))",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a coordinator waits forever for dead members",
        target=f"{_GROUP}.tick",
        old="if gone or",
        new="if",
        world=Kind.BROKERS,
    ),
)
