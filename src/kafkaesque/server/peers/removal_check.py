"""How a broker learns that it was removed, while it ran or was away.

The others cut their links to it and may never dial it again: so it visits the brokers that it has
no link with, and asks. The answer is a sentence if it was removed, else empty.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec

from kafkaesque.errors import LinkError
from kafkaesque.net.links import Links
from kafkaesque.types import NodeId

ASK_EVERY_S = 1.0
VISIT_MS_MAX = 2_000
SENTENCE_CHARS_MAX = 1_000

_sentences = msgspec.msgpack.Decoder(
    Annotated[str, msgspec.Meta(max_length=SENTENCE_CHARS_MAX)],
)
_nodes = msgspec.msgpack.Decoder(NodeId)


def standing_of(data: memoryview, removed: Callable[[NodeId], str | None]) -> bytes:
    """Return the answer to a broker that asks; raises MsgspecError for an invalid question."""
    return msgspec.msgpack.encode(removed(_nodes.decode(data)) or "")


async def watch_standing(
    links: Links,
    call: int,
    node: NodeId,
    addresses: Callable[[], Iterable[tuple[str, int]]],
    on_removed: Callable[[str], None],
) -> None:
    """Ask the others repeatedly whether this broker was removed, until cancelled.

    `on_removed` is called once, if so. Brokers that are unreachable, or too old to know the
    question, are ignored.
    """
    question = msgspec.msgpack.encode(node)
    while True:  # ends when this broker stops, or learns that it must
        await asyncio.sleep(ASK_EVERY_S)
        for address in addresses():
            try:
                _, answer = await links.visit(address, call, question, VISIT_MS_MAX)
                said = _sentences.decode(answer)
            except (LinkError, TimeoutError, msgspec.MsgspecError):
                continue
            if said:
                on_removed(said)
                return
