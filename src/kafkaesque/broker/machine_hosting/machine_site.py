"""A machine's place on a broker, and what machine keepers need there."""

from collections.abc import Callable

from msgspec import Struct

from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.errors import LogError
from kafkaesque.slices import Slices


class MachineSite(Struct, frozen=True, kw_only=True):
    """One replica with a machine on its log."""

    replica: Replica
    clock: Clock
    snapshots: MachineSnapshots
    slices: Slices
    failed: Callable[[LogError], None]
    """Called when the log cannot be understood, which is final. Damage is no such failure."""
