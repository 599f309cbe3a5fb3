"""For tests of user programs: a real broker in the test's process, or a real cluster.

`from kafkaesque.testing import Broker, Cluster`. Nothing else is imported until then, because
pytest loads this package whenever it starts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkaesque.testing.broker import Broker as Broker
    from kafkaesque.testing.cluster import Cluster as Cluster

__all__ = ["Broker", "Cluster"]


def __getattr__(name: str) -> Any:
    """Import names lazily (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{name.lower()}"), name)
