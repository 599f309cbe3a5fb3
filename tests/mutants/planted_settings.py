"""Planted bugs in how settings of brokers are stored and applied; tests should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_SETTINGS = "kafkaesque.machines.catalog.broker_settings"
_BROKER = "kafkaesque.broker.broker:Broker"

SETTING_MUTANTS = (
    Mutant(
        name="cluster-wide settings override those of one broker",
        target=f"{_SETTINGS}:settings_in_force",
        old="{**of_all, **catalog.broker_settings.get(node, {})}",
        new="{**catalog.broker_settings.get(node, {}), **of_all}",
        world=Kind.SETTINGS,
    ),
    Mutant(
        name="a catalog snapshot forgets broker settings",
        target="kafkaesque.machines.catalog.catalog:Catalog.records",
        old="in self.broker_settings.items()",
        new="in {}.items()",
        world=Kind.SETTINGS,
    ),
    Mutant(
        name="a change of broker settings overwrites a concurrent one",
        target=f"{_SETTINGS}:set_broker_settings",
        old="before != expected",
        new="False",
        world=Kind.SETTINGS,
    ),
    Mutant(
        name="broker settings are written before all brokers can read them",
        target=f"{_SETTINGS}:set_broker_settings",
        old="not can_be_kept(catalog)",
        new="False",
        world=Kind.SETTINGS,
    ),
    Mutant(
        name="the settings of a removed broker stay",
        target="kafkaesque.machines.catalog.catalog_moves:remove_broker",
        old="if node in catalog.broker_settings:",
        new="if False:",
        world=Kind.SETTINGS,
    ),
    Mutant(
        name="a running broker ignores changed settings",
        target=f"{_BROKER}._on_applied",
        old="self._follow_settings()",
        new="pass",
        world=Kind.SETTINGS,
    ),
    Mutant(
        name="open partitions keep their old defaults",
        target=f"{_BROKER}._configure",
        old="self.topics.configure(config.producers)",
        new="pass",
        world=Kind.SETTINGS,
    ),
)
