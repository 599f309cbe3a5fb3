"""How a broker finds out that it was removed, while it ran or while it was away.

The others cut their links to it, and might never dial it again: so it visits those with whom it
has no link, and asks. Their answer is a sentence if it was removed, and nothing otherwise.
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
    """Return the answer to a broker that asks; raises MsgspecError for what is no question."""
    return msgspec.msgpack.encode(removed(_nodes.decode(data)) or "")


async def watch_standing(
    links: Links,
    call: int,
    node: NodeId,
    addresses: Callable[[], Iterable[tuple[str, int]]],
    on_removed: Callable[[str], None],
) -> None:
    """Ask the others whether this broker was removed, again and again until it is cancelled.

    `on_removed` is told once, if so. Whoever cannot be reached, or is too old to know the question,
    says nothing of it.
    """
    question = msgspec.msgpack.encode(node)
    while True:  # ends when this broker stops, or knows that it must
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
