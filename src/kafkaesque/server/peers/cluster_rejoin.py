"""Restarting a broker without its journal among the others, on an operator's request.

It first asks them what they remember of it: it must not reuse a term or a run that it was in before
(`broker/storage/salvage.py`).
"""

import asyncio
import random

import msgspec

from kafkaesque.broker.storage.identity import Folder, FolderIdentity, KnownPeer
from kafkaesque.broker.storage.salvage import Remembered, has_journal
from kafkaesque.broker.storage.salvage import rejoin as begin_again
from kafkaesque.config import LogConfig
from kafkaesque.errors import LinkError, LogError
from kafkaesque.events import Events, JournalLost
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.handshake import Identity
from kafkaesque.net.links import Links
from kafkaesque.net.ports import LinkPorts
from kafkaesque.server.peers.cluster_join import CannotJoin
from kafkaesque.server.peers.peering import Ask
from kafkaesque.server.requests.addresses import shown
from kafkaesque.types import NodeId

TRIES_MAX = 20
SILENT_TRIES_MAX = 4
"""Tries for silent brokers, once another has answered."""
TRY_EVERY_S = 0.5
ASK_MS_MAX = 2_000

_answers = msgspec.msgpack.Decoder(Remembered)


async def rejoin(
    disk: Folder,
    config: LogConfig,
    folder: FolderIdentity,
    secret: bytes,
    links: LinkConfig,
    events: Events,
) -> None:
    """Set a lost journal aside and start over; durable on return.

    Raises CannotJoin if no broker answers or the cluster refuses this one, and LogError if there is
    nothing to do.
    """
    if has_journal(disk, config):
        raise LogError("the journal is intact: start this broker without --rejoin")
    if not folder.peers:
        raise LogError(
            "this broker knows of no others: `kafkaesque log repair --data DIR` rebuilds the "
            "journal from segments"
        )
    told = await _ask(folder, secret, links)
    begin_again(disk, config, folder, told)
    events.tell(JournalLost())


async def _ask(folder: FolderIdentity, secret: bytes, config: LinkConfig) -> list[Remembered]:
    """Ask all others, with retries; at least one must answer.

    A silent broker may know more than the others. It then reports this broker as an old copy of its
    folder, and everything starts over (`broker/cluster/old_copies.py`).
    """
    identity = Identity(
        cluster=folder.cluster, node=None, directory=folder.directory, session=1, secret=secret
    )
    ports = LinkPorts(deliver=_unexpected, receive=_unexpected)
    links = Links(identity, ports, config, random.SystemRandom())
    links.start()
    told: dict[NodeId, Remembered] = {}
    reason = ""
    try:
        for attempt in range(TRIES_MAX):
            if attempt:
                await asyncio.sleep(TRY_EVERY_S)
            for peer in folder.peers:
                if peer.node not in told:
                    try:
                        told[peer.node] = await _ask_one(links, peer, folder.node)
                    except CannotJoin:
                        raise
                    except (LinkError, TimeoutError, msgspec.MsgspecError) as error:
                        where = shown(peer.host, peer.port)
                        reason = f"broker {peer.node} at {where}: {error}"
            if len(told) == len(folder.peers) or (told and attempt >= SILENT_TRIES_MAX):
                break
    finally:
        await links.close()
    if not told:
        raise CannotJoin(f"cannot rejoin: no other broker answers ({reason})")
    return list(told.values())


async def _ask_one(links: Links, peer: KnownPeer, node: NodeId) -> Remembered:
    question = msgspec.msgpack.encode(node)
    address = (peer.host, peer.port)
    _, answer = await links.visit(address, Ask.REMEMBERED, question, ASK_MS_MAX)
    told = _answers.decode(answer)
    if told.refusal:
        raise CannotJoin(f"cannot rejoin: {told.refusal}")
    return told


def _unexpected(*_: object) -> None:
    """A visitor receives only answers."""
