"""Planted bugs in groups whose coordinator assigns, over several brokers; seeds are to notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_GROUP = "kafkaesque.machines.groups.consumer_group:ConsumerGroup"

CLUSTER_MEMBER_MUTANTS = (
    Mutant(
        name="a coordinator gives a partition on before its reader has let it go",
        target=f"{_GROUP}._is_free",
        old="not owner.holds(place)",
        new="True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the epoch does not rise when a member is gone",
        target="kafkaesque.machines.groups.consumer_draft:Draft.retarget",
        old="epoch=self.epoch + 1",
        new="epoch=self.epoch + (len(self.members) >= len(self._before))",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a coordinator waits for the dead for ever",
        target=f"{_GROUP}.tick",
        old="if gone or",
        new="if",
        world=Kind.BROKERS,
    ),
)
