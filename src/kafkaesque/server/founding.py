"""What a broker is before it starts: who its data folder says it is, or becomes for the first time.

used folder               it is who it was, and looks for the others where they were
used folder and --join    the same, unless a broker answers there that is of another cluster
empty folder              it begins a cluster of its own
empty folder and --join   it asks the cluster for a number; it never begins one
"""

import os
import random
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kafkaesque.broker.identity import (
    DIRECTORY_BYTES,
    Folder,
    FolderIdentity,
    load_identity,
    new_cluster_id,
    save_identity,
)
from kafkaesque.cluster_config import LinkConfig
from kafkaesque.errors import BadConfiguration, LogError
from kafkaesque.machines.features import Range
from kafkaesque.server.joining import join, meet
from kafkaesque.server.listening import is_local, parse_address
from kafkaesque.server.peering import Application
from kafkaesque.types import NodeId

FOUNDER: NodeId = 1
SECRET_BYTES = 32
SECRET_BYTES_MAX = 4 << 10
SECRET_NAME = "secret"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a broker will be reached, and whom it is to join."""

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
    """Return who the broker of a folder is; raises LogError, CannotJoin, BadConfiguration."""
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
    """Note that the folder has a journal, which is of this node; raises LogError if of another."""
    if journal != identity.node:
        raise LogError(
            f"the data folder is of broker {identity.node}, but its journal of broker {journal}: "
            "files of two folders were mixed"
        )
    if identity.has_begun:
        return identity
    begun = msgspec.structs.replace(identity, has_begun=True)
    save_identity(disk, begun)
    return begun


def secret_of(data: Path, given: Path | None, host: str) -> bytes:
    """Return the cluster's secret, empty where nobody beyond this machine can be a member.

    One that is given is kept in the data folder, so that it need not be given again; a broker that
    listens beyond this machine and has none makes one.
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
    """Write the secret whole or not at all, for the owner's eyes alone."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    with new.open("wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
