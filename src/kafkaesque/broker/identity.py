"""Who the broker of a data folder is: one small file, written before anything else.

    magic 4 | format version 2 | crc-32c of the state 4 | length of the state 4 | state, msgpack

The file and the journal belong together. A folder with one and without the other was copied in
part, and whoever went on with it would vote a second time where it has voted already: so it is
refused. `has_begun` tells that from a first start that was cut short.
"""

import struct
from base64 import urlsafe_b64encode
from contextlib import suppress

import msgspec

from kafkaesque.errors import CorruptLog, ForeignFile, JournalLost, LogError, NewerFormat
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.journal import Journal
from kafkaesque.record.crc import crc32c
from kafkaesque.types import NodeId

Folder = Disk
"""Where an identity is kept."""

FORMAT = 1
PATH = "identity"
DIRECTORY_BYTES = 16
_NEW_PATH = "identity.new"
_MAGIC = b"KQID"
_HEADER = struct.Struct(">4sHII")


class KnownPeer(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Another broker, and where it was last."""

    node: NodeId
    host: str
    port: int
    directory: bytes


class FolderIdentity(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What a broker must never forget of itself."""

    cluster: str
    node: NodeId
    directory: bytes
    """Drawn when the folder was made: a broker that lost its folder is another broker."""

    is_founder: bool
    """Whether the cluster began here."""

    has_begun: bool = False
    """Whether the journal was made."""

    peers: tuple[KnownPeer, ...] = ()
    """Where to look for the others when the broker starts again."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FolderIdentity)


def load_identity(disk: Disk, *, may_lack_journal: bool = False) -> FolderIdentity | None:
    """Return who the folder belongs to, None if to nobody yet.

    Raises LogError for a folder that is not whole, CorruptLog, ForeignFile, NewerFormat.
    """
    with disk_errors(PATH):
        names = disk.list("")
        if PATH not in names:
            if Journal.exists(disk):
                raise LogError(
                    "the data folder has a journal but no identity: it was copied in part; "
                    "copy all of it, or begin with an empty folder"
                )
            return None
        file = disk.open(PATH)
        data = file.read(0, file.size())
        file.close()
    identity = decode_identity(data)
    if identity.has_begun and not may_lack_journal and not Journal.exists(disk):
        raise JournalLost(
            "the data folder has an identity but no journal, as if it had been copied in part"
        )
    return identity


def save_identity(disk: Disk, identity: FolderIdentity) -> None:
    """Write who the folder belongs to; durable on return."""
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
    """Return what a file says; raises ForeignFile, NewerFormat, CorruptLog."""
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise ForeignFile(PATH, "it does not begin as a broker's identity does")
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
    """Return the name of a new cluster, in the form that Kafka's have."""
    return urlsafe_b64encode(chance).decode().rstrip("=")
