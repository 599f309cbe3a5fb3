"""How a broker that has lost its journal begins again among the others, when a person says so.

It asks them first what they know of it: it must not take part in a term, nor tell of a run, that
it was in before (`broker/salvage.py`).
"""

import asyncio
import logging
import random

import msgspec

from kafkaesque.broker.identity import Folder, FolderIdentity, KnownPeer
from kafkaesque.broker.salvage import Remembered, has_journal
from kafkaesque.broker.salvage import rejoin as begin_again
from kafkaesque.cluster_config import LinkConfig
from kafkaesque.config import LogConfig
from kafkaesque.errors import CannotJoin, LinkError, LogError
from kafkaesque.net.handshake import Identity
from kafkaesque.net.links import Links
from kafkaesque.net.ports import LinkPorts
from kafkaesque.server.listening import shown
from kafkaesque.server.peering import Ask
from kafkaesque.types import NodeId

log = logging.getLogger(__name__)

TRIES_MAX = 20
SILENT_TRIES_MAX = 4
"""So often those are asked again who do not answer, once somebody has."""
TRY_EVERY_S = 0.5
ASK_MS_MAX = 2_000

_answers = msgspec.msgpack.Decoder(Remembered)


async def rejoin(
    disk: Folder, config: LogConfig, folder: FolderIdentity, secret: bytes, links: LinkConfig
) -> None:
    """Put a lost journal aside and begin again; durable on return.

    Raises CannotJoin if nobody answers or the cluster will not have this broker, and LogError if
    there is nothing to be done.
    """
    if has_journal(disk, config):
        raise LogError("the journal is whole: start this broker without --rejoin")
    if not folder.peers:
        raise LogError(
            "this broker knows of no others: `kafkaesque log repair --data DIR` makes a journal "
            "from what is in its segments"
        )
    told = await _ask(folder, secret, links)
    begin_again(disk, config, folder, told)
    log.error(
        "journal_lost: this broker begins again in all its groups; it has no vote in them until "
        "the others have given it what they hold"
    )


async def _ask(folder: FolderIdentity, secret: bytes, config: LinkConfig) -> list[Remembered]:
    """Ask all others, for a while; at least one must answer.

    One that does not may know more than the others. Then it finds this broker to be on an old copy
    of its folder, and all begins once more (`broker/lives.py`).
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
        raise CannotJoin(f"cannot rejoin, for no other broker answers ({reason})")
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
    """A visitor is sent nothing but answers."""
