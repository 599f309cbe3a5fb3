"""How a broker becomes one of a cluster that it knows one address of, or sees that it is one."""

import asyncio
import logging
import random

import msgspec

from kafkaesque.broker.identity import FolderIdentity
from kafkaesque.cluster_config import LinkConfig
from kafkaesque.errors import (
    AnswerLost,
    CallRefused,
    CannotJoin,
    LinkError,
    LinkRefused,
    MalformedLink,
    PeerUnreachable,
    SecretMissing,
)
from kafkaesque.net.handshake import Identity
from kafkaesque.net.links import Links
from kafkaesque.net.ports import LinkPorts
from kafkaesque.server.listening import shown
from kafkaesque.server.peering import Admission, Application, Ask

log = logging.getLogger(__name__)

TRIES_MAX = 60
SAID_EVERY = 10
"""Tries in vain after which it is said again whom a broker waits for; the first is said too."""
TRY_EVERY_S = 0.5
"""A cluster that is just starting has no leader yet, or nobody listens: that may take a while."""

JOIN_S_MAX = 60.0
"""No further try after this long, for to wait for an answer in vain takes long, too."""

MEET_S_MAX = 1.0
"""A broker that was one of the cluster before starts without the one it was told of after this."""

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
            except SecretMissing as error:
                raise CannotJoin(_no_secret(where)) from error
            except LinkRefused as error:
                raise CannotJoin(f"the broker at {where} lets nobody in: {error}") from error
            except (AnswerLost, CallRefused, PeerUnreachable, TimeoutError) as error:
                if attempt == TRIES_MAX - 1 or loop.time() >= end_s:
                    raise CannotJoin(f"cannot join the cluster at {where}: {error}") from error
                if attempt % SAID_EVERY == 0:
                    log.warning("join_waits address=%s: no broker lets us in yet: %s", where, error)
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


async def meet(
    address: tuple[str, int], folder: FolderIdentity, secret: bytes, config: LinkConfig
) -> None:
    """See that the broker at an address would have one with this folder; raises CannotJoin if not.

    Nobody may be there yet, for brokers start in any order: the folder knows the others, too.
    """
    identity = Identity(
        cluster=folder.cluster, node=None, directory=folder.directory, session=1, secret=secret
    )
    ports = LinkPorts(deliver=_unexpected, receive=_unexpected)
    links = Links(identity, ports, config, random.SystemRandom())
    links.start()
    try:
        async with asyncio.timeout(MEET_S_MAX):
            await links.meet(address)
    except SecretMissing as error:
        raise CannotJoin(_no_secret(shown(*address))) from error
    except LinkRefused as error:
        raise CannotJoin(
            f"the broker at {shown(*address)} does not take the one of this data folder: {error}; "
            "start with an empty folder to join it, or without --join to go on as before"
        ) from error
    except MalformedLink as error:
        raise CannotJoin(
            f"no broker of ours answers at {shown(*address)}: {error}; start without --join to go "
            "on as before"
        ) from error
    except (LinkError, TimeoutError):
        pass  # as if nobody were there
    finally:
        await links.close()


def _no_secret(where: str) -> str:
    return f"{where} is on another machine: give the cluster's secret with --secret-file"


def _unexpected(*_: object) -> None:
    """A visitor is sent nothing but answers."""
