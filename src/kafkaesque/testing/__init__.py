"""For the tests of users' programs: the real broker, in the process of the test.

`from kafkaesque.testing import Broker`. Nothing else is imported until then, because pytest looks
at this package whenever it starts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkaesque.testing.broker import Broker as Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafkaesque.testing import broker

    return getattr(broker, name)
