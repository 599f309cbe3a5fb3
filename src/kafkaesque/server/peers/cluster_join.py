"""Joining a cluster by one known address, or checking that a broker belongs to it."""

import asyncio
import logging
import random

import msgspec

from kafkaesque.broker.storage.identity import FolderIdentity
from kafkaesque.errors import LinkError, PeerUnreachable
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.errors import AnswerLost, CallRefused, LinkRefused, MalformedLink, SecretMissing
from kafkaesque.net.handshake import Identity
from kafkaesque.net.links import Links
from kafkaesque.net.ports import LinkPorts
from kafkaesque.server.peers.peering import Admission, Application, Ask
from kafkaesque.server.requests.addresses import shown

log = logging.getLogger(__name__)

TRIES_MAX = 60
SAID_EVERY = 10
"""Log the wait at the first failed try, and again after this many."""
TRY_EVERY_S = 0.5
"""Pause between tries: a starting cluster may have no leader or no listener for a while."""

JOIN_S_MAX = 60.0
"""No new try after this long, because waiting in vain for an answer takes long too."""

MEET_S_MAX = 1.0
"""A broker that is already a member starts after this long without reaching the address."""

_admissions = msgspec.msgpack.Decoder(Admission)


class CannotJoin(LinkError):
    """The cluster to join cannot be reached, or refuses the broker."""


async def join(
    address: tuple[str, int], application: Application, secret: bytes, config: LinkConfig
) -> Admission:
    """Request a broker number from the cluster at an address; raises CannotJoin if refused.

    The same directory always gets the same number, so a lost answer does no harm.
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
                raise CannotJoin(f"the broker at {where} refuses the link: {error}") from error
            except (AnswerLost, CallRefused, PeerUnreachable, TimeoutError) as error:
                if attempt == TRIES_MAX - 1 or loop.time() >= end_s:
                    raise CannotJoin(f"cannot join the cluster at {where}: {error}") from error
                if attempt % SAID_EVERY == 0:
                    log.warning(
                        "join_waits address=%s: no broker accepts this one yet: %s", where, error
                    )
            except (LinkError, msgspec.MsgspecError) as error:
                raise CannotJoin(f"no Kafkaesque broker answers at {where}: {error}") from error
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
    """Check that the broker at an address accepts this folder; raises CannotJoin if not.

    No broker may listen there yet, because brokers start in any order: the folder knows the others
    too.
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
            f"the broker at {shown(*address)} refuses the broker of this data folder: {error}; "
            "start with an empty folder to join it, or without --join to continue as before"
        ) from error
    except MalformedLink as error:
        raise CannotJoin(
            f"no Kafkaesque broker answers at {shown(*address)}: {error}; start without --join to "
            "continue as before"
        ) from error
    except (LinkError, TimeoutError):
        pass  # as if none listened
    finally:
        await links.close()


def _no_secret(where: str) -> str:
    return f"{where} is on another machine: give the cluster's secret with --secret-file"


def _unexpected(*_: object) -> None:
    """A visitor receives only answers."""
