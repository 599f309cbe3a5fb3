"""Lists several things in a sentence, in singular or plural."""

from collections.abc import Sequence


def listed(some: Sequence[object]) -> str:
    """Return `1`, `1 and 2`, or `1, 2 and 3`."""
    *most, last = map(str, some)
    return f"{', '.join(most)} and {last}" if most else last


def named_brokers(nodes: Sequence[object]) -> str:
    """Return `broker 1`, or `brokers 1 and 2`."""
    return f"{'broker' if len(nodes) == 1 else 'brokers'} {listed(nodes)}"
