"""How a broker with an empty data folder becomes one of a cluster that it knows one address of."""

import asyncio
import random

import msgspec

from kafkaesque.cluster_config import LinkConfig
from kafkaesque.errors import (
    AnswerLost,
    CallRefused,
    CannotJoin,
    LinkError,
    LinkRefused,
    PeerUnreachable,
)
from kafkaesque.net.handshake import Identity
from kafkaesque.net.links import Links
from kafkaesque.net.ports import LinkPorts
from kafkaesque.server.listening import shown
from kafkaesque.server.peering import Admission, Application, Ask

TRIES_MAX = 60
TRY_EVERY_S = 0.5
"""A cluster that is just starting has no leader yet, or nobody listens: that may take a while."""

JOIN_S_MAX = 60.0
"""No further try after this long, for to wait for an answer in vain takes long, too."""

_admissions = msgspec.msgpack.Decoder(Admission)


async def join(
    address: tuple[str, int], application: Application, secret: bytes, config: LinkConfig
) -> Admission:
    """Ask the cluster at an address for a number; raises CannotJoin if it gives none.

    To ask again with the same directory gives the same number, so an answer that was lost does no
    harm.
    """
    directory = application.directory
    identity = Identity(cluster="", node=None, directory=directory, session=1, secret=secret)
    question = msgspec.msgpack.encode(application)
    ports = LinkPorts(deliver=_unexpected, receive=_unexpected)
    links = Links(identity, ports, config, random.SystemRandom())
    links.start()
    where = shown(*address)
    loop = asyncio.get_running_loop()
    end_s = loop.time() + JOIN_S_MAX
    try:
        for attempt in range(TRIES_MAX):
            try:
                _, answer = await links.visit(address, Ask.JOIN, question)
                admission = _admissions.decode(answer)
            except LinkRefused as error:
                raise CannotJoin(f"the broker at {where} lets nobody in: {error}") from error
            except (AnswerLost, CallRefused, PeerUnreachable, TimeoutError) as error:
                if attempt == TRIES_MAX - 1 or loop.time() >= end_s:
                    raise CannotJoin(f"cannot join the cluster at {where}: {error}") from error
            except (LinkError, msgspec.MsgspecError) as error:
                raise CannotJoin(f"no broker of ours answers at {where}: {error}") from error
            else:
                if admission.refusal:
                    raise CannotJoin(f"cannot join the cluster at {where}: {admission.refusal}")
                return admission
            await asyncio.sleep(TRY_EVERY_S)
        raise AssertionError("the last attempt returns or raises")
    finally:
        await links.close()


def _unexpected(*_: object) -> None:
    """A visitor is sent nothing but answers."""
