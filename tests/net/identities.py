"""Brokers' identities for tests of links."""

from typing import Any

from kafkaesque.net.handshake import Identity
from kafkaesque.types import NodeId

SECRET = b"a secret of thirty-two bytes, ok"


def an_identity(node: NodeId | None, **changes: Any) -> Identity:
    fields: dict[str, Any] = {
        "cluster": "kitchen",
        "node": node,
        "directory": (node or 0).to_bytes(16, "big"),
        "session": 1000 + (node or 0),
        "features": {"transactions": 2},
        "secret": SECRET,
    }
    return Identity(**(fields | changes))


def anyone(node: NodeId | None, directory: bytes) -> None:
    """Let every node open a link."""
