"""Carries gossip: over an existing link, else by a visit to the address."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from kafkaesque.errors import LinkError
from kafkaesque.gossip.gossip import Gossip, Outgoing
from kafkaesque.gossip.messages import Member
from kafkaesque.net.gossip_codec import decode_packet, encode_packet
from kafkaesque.net.links import Links
from kafkaesque.types import NodeId

TICK_MS = 100
"""A member is pinged once in ten of these."""

VISITS_MAX = 8
"""Visits under way; beyond this, packets for strangers are dropped, as any packet may be."""

VISIT_MS_MAX = 2_000


class Gossiping:
    """The driver of one broker's gossip; `call` and `note` are the kinds its packets travel as."""

    def __init__(
        self,
        gossip: Gossip,
        links: Links,
        *,
        call: int,
        note: int,
        on_change: Callable[[Member], None],
    ) -> None:
        self.gossip = gossip
        self._links = links
        self._call = call
        self._note = note
        self._on_change = on_change
        self._visits: set[asyncio.Task[None]] = set()

    def tick(self) -> None:
        """Advance the time; call it every `TICK_MS`."""
        self._carry(self.gossip.tick())

    def receive(self, data: memoryview) -> None:
        """Handle a packet; raises MalformedLink if it is not one."""
        self._carry(self.gossip.receive(decode_packet(data)))

    async def close(self, *, is_leaving: bool) -> None:
        """Stop; on leaving, notify a few members so that none has to find out."""
        if is_leaving:
            self._carry(self.gossip.leave())
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    def _carry(self, packets: Iterable[Outgoing]) -> None:
        for address, packet in packets:
            data = encode_packet(packet)
            node = self._at(address)
            if node is not None and self._links.note(node, self._note, data):
                continue
            if len(self._visits) < VISITS_MAX:
                visit = asyncio.get_running_loop().create_task(self._visit(address, data))
                self._visits.add(visit)
                visit.add_done_callback(self._visits.discard)
        for member in self.gossip.take_changes():
            self._on_change(member)

    def _at(self, address: tuple[str, int]) -> NodeId | None:
        for member in self.gossip.members.values():
            if (member.host, member.port) == address:
                return member.node
        return None

    async def _visit(self, address: tuple[str, int], data: bytes) -> None:
        # Nothing may listen there, or not our broker: that is for gossip to find out.
        with suppress(LinkError, TimeoutError):
            await self._links.visit(address, self._call, data, VISIT_MS_MAX)
