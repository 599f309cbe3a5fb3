"""The identity of a data folder's broker: one small file, written before anything else.

    magic 4 | format version 2 | crc-32c of the state 4 | length of the state 4 | state, msgpack

The file and the journal belong together. A folder with only one of them was copied in part, and a
broker that went on with it could vote twice in one term: so it is refused. `has_begun`
distinguishes that from a first start that was interrupted.
"""

import struct
from base64 import urlsafe_b64encode
from contextlib import suppress

import msgspec

from kafkaesque.broker.storage.storage_errors import JournalLost
from kafkaesque.errors import LogError, NewerFormat
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog, ForeignFile
from kafkaesque.log.journal import Journal
from kafkaesque.record.crc import crc32c
from kafkaesque.types import NodeId

Folder = Disk
"""Where an identity is stored."""

FORMAT = 1
PATH = "identity"
DIRECTORY_BYTES = 16
_NEW_PATH = "identity.new"
_MAGIC = b"KQID"
_HEADER = struct.Struct(">4sHII")


class KnownPeer(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Another broker, and its last known address."""

    node: NodeId
    host: str
    port: int
    directory: bytes


class FolderIdentity(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What a broker must never forget about itself."""

    cluster: str
    node: NodeId
    directory: bytes
    """Generated with the folder: a broker that lost its folder is another broker."""

    is_founder: bool
    """Whether the cluster was created here."""

    has_begun: bool = False
    """Whether the journal was created."""

    peers: tuple[KnownPeer, ...] = ()
    """Where to look for the others when the broker restarts."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FolderIdentity)


def load_identity(disk: Disk, *, may_lack_journal: bool = False) -> FolderIdentity | None:
    """Return the identity of the folder's broker; None if it has none yet.

    Raises LogError for an incomplete folder, CorruptLog, ForeignFile, NewerFormat.
    """
    with disk_errors(PATH):
        names = disk.list("")
        if PATH not in names:
            if Journal.exists(disk):
                raise LogError(
                    "the data folder has a journal but no identity: it was only partly copied; "
                    "copy all of it, or start with an empty folder"
                )
            return None
        file = disk.open(PATH)
        data = file.read(0, file.size())
        file.close()
    identity = decode_identity(data)
    if identity.has_begun and not may_lack_journal and not Journal.exists(disk):
        raise JournalLost(
            "the data folder has an identity but no journal, as if it was only partly copied"
        )
    return identity


def save_identity(disk: Disk, identity: FolderIdentity) -> None:
    """Write the identity; durable on return."""
    state = _encoder.encode(identity)
    with disk_errors(PATH):
        with suppress(FileNotFoundError):
            disk.remove(_NEW_PATH)
        file = disk.create(_NEW_PATH)
        try:
            file.write(0, _HEADER.pack(_MAGIC, FORMAT, crc32c(state), len(state)) + state)
            disk.sync_now([file], [])
        finally:
            file.close()
        disk.rename(_NEW_PATH, PATH)
        disk.sync_now([], [""])


def decode_identity(data: bytes) -> FolderIdentity:
    """Decode an identity file; raises ForeignFile, NewerFormat, CorruptLog."""
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise ForeignFile(PATH, "it does not start like a broker's identity")
    _, version, crc, length = _HEADER.unpack_from(data)
    if version > FORMAT:
        raise NewerFormat(PATH, version, FORMAT)
    state = data[_HEADER.size :]
    if len(state) != length or crc32c(state) != crc:
        raise CorruptLog(PATH, 0, "its checksum is wrong")
    try:
        return _decoder.decode(state)
    except msgspec.MsgspecError as error:
        raise NewerFormat(PATH, FORMAT + 1, FORMAT) from error


def new_cluster_id(chance: bytes) -> str:
    """Return the name of a new cluster, in the form that Kafka uses."""
    return urlsafe_b64encode(chance).decode().rstrip("=")
