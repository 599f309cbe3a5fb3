"""A broker's identity before it starts: read from its data folder, or created there.

used folder               keeps its identity, and looks for the others at their old addresses
used folder and --join    the same, unless a broker of another cluster answers there
empty folder              starts a new cluster
empty folder and --join   asks the cluster for a number; never starts a cluster
"""

import os
import random
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kafkaesque.broker.storage.identity import (
    DIRECTORY_BYTES,
    Folder,
    FolderIdentity,
    load_identity,
    new_cluster_id,
    save_identity,
)
from kafkaesque.errors import BadConfiguration, LogError
from kafkaesque.machines.catalog.features import Range
from kafkaesque.net.config import LinkConfig
from kafkaesque.server.peers.cluster_join import join, meet
from kafkaesque.server.peers.peering import Application
from kafkaesque.server.requests.addresses import is_local, parse_address
from kafkaesque.types import NodeId

FOUNDER: NodeId = 1
SECRET_BYTES = 32
SECRET_BYTES_MAX = 4 << 10
SECRET_NAME = "secret"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a broker, and the cluster that it joins."""

    host: str
    port: int
    rack: str
    join: str
    """The `host:port` of any broker of the cluster; empty for none."""


async def identify(
    disk: Folder,
    place: Place,
    secret: bytes,
    links: LinkConfig,
    supports: Mapping[str, Range],
    *,
    may_lack_journal: bool = False,
) -> FolderIdentity:
    """Return the identity of a folder's broker; raises LogError, CannotJoin, BadConfiguration."""
    found = load_identity(disk, may_lack_journal=may_lack_journal)
    if found is not None:
        if place.join:
            await meet(parse_address(place.join), found, secret, links)
        return found
    directory = random.SystemRandom().randbytes(DIRECTORY_BYTES)
    if place.join:
        application = Application(
            directory=directory,
            host=place.host,
            port=place.port,
            rack=place.rack,
            levels=dict(supports),
        )
        admission = await join(parse_address(place.join), application, secret, links)
        identity = FolderIdentity(
            cluster=admission.cluster,
            node=admission.node,
            directory=directory,
            is_founder=False,
            peers=admission.peers,
        )
    else:
        cluster = new_cluster_id(random.SystemRandom().randbytes(DIRECTORY_BYTES))
        identity = FolderIdentity(
            cluster=cluster, node=FOUNDER, directory=directory, is_founder=True
        )
    save_identity(disk, identity)
    return identity


def begin(disk: Folder, identity: FolderIdentity, journal: NodeId) -> FolderIdentity:
    """Record that the folder has a journal of this node; raises LogError if it is another's."""
    if journal != identity.node:
        raise LogError(
            f"the data folder belongs to broker {identity.node}, its journal to broker {journal}: "
            "files of two folders were mixed"
        )
    if identity.has_begun:
        return identity
    begun = msgspec.structs.replace(identity, has_begun=True)
    save_identity(disk, begun)
    return begun


def secret_of(data: Path, given: Path | None, host: str) -> bytes:
    """Return the cluster's secret; empty if no member can be on another machine.

    A given secret is stored in the data folder, so it need not be given again; a broker that
    listens beyond this machine and has none creates one.
    """
    kept = data / SECRET_NAME
    if given is not None:
        try:
            secret = given.read_bytes().strip()
        except OSError as error:
            raise BadConfiguration(f"cannot read the secret {given}: {error.strerror}") from error
        if not 0 < len(secret) <= SECRET_BYTES_MAX:
            raise BadConfiguration(f"a secret has 1 to {SECRET_BYTES_MAX} bytes, unlike {given}")
        _keep(kept, secret)
        return secret
    if kept.exists():
        return kept.read_bytes()
    if is_local(host):
        return b""
    secret = random.SystemRandom().randbytes(SECRET_BYTES).hex().encode()
    _keep(kept, secret)
    return secret


def _keep(path: Path, secret: bytes) -> None:
    """Write the secret atomically, readable by the owner only."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    with new.open("wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
