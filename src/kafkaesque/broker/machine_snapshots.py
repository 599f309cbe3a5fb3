"""A machine's state beside the log that it lives on, so that a start replays only the tail.

A snapshot is the machine's own records, and is taken when all of them are committed. It is a
convenience: it can fail, be damaged or missing, and then the log says the same
(`docs/reference/format-snapshot.md`).

An old snapshot and the log behind it do *not* say the same for ever: compaction drops the traces of
deleted keys after a day, and an older state would bring these back. So only the newest is ever
used, and `is_due` lets it never grow old.
"""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError, NewerFormat
from kafkaesque.log import snapshot
from kafkaesque.log.disk import Disk
from kafkaesque.log.snapshot import MACHINE
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import GroupId, Offset

FORMAT = 1


class _State(msgspec.Struct, array_like=True, frozen=True):
    """What the envelope holds."""

    version: int
    records: list[tuple[bytes, bytes | None]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


class MachineSnapshots:
    """The snapshots of one machine."""

    def __init__(self, disk: Disk, folder: GroupId, config: LogConfig) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._is_writing = False
        self._is_dropped = False
        self._size = 0

    def is_due(self, unsaved_bytes: int, unsaved_ms: int) -> bool:
        """Return whether so much and so old a change is worth a snapshot."""
        if self._is_writing or not unsaved_bytes:
            return False
        enough_bytes = max(self._config.snapshot_growth_bytes, self._size)
        return unsaved_bytes >= enough_bytes or unsaved_ms >= self._config.snapshot_age_ms_max

    def load(self, start: Offset, end: Offset) -> tuple[Offset, list[MachineRecord]]:
        """Return the newest state, and where in a log of these offsets it was taken.

        If there is none, or it is damaged, that is no records, at `start`. Raises NewerFormat,
        ForeignFile.
        """
        newest = max(snapshot.offsets(self._disk, self._folder, MACHINE), default=-1)
        found = snapshot.load(self._disk, self._folder, newest, MACHINE)
        if found is None or found[0] != newest or not start <= newest <= end:
            return start, []
        offset, data = found
        try:
            state = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise NewerFormat(self._folder, FORMAT + 1, FORMAT) from error
        if state.version != FORMAT:
            raise NewerFormat(self._folder, state.version, FORMAT)
        self._size = len(data)
        return offset, [MachineRecord(key, value) for key, value in state.records]

    def begin(self, offset: Offset, records: Iterable[MachineRecord]) -> None:
        """Write the state as it was before `offset` without waiting for the disk."""
        assert not self._is_writing, "one at a time: ask `is_due` first"
        data = self._encoded(records)

        def done(error: OSError | None) -> None:
            self._is_writing = False
            if error is None:
                self._remove_old()

        with suppress(LogError):
            self._is_writing = True
            snapshot.begin_write(self._disk, self._folder, offset, data, MACHINE, done)
            return
        self._is_writing = False

    def write(self, offset: Offset, records: Iterable[MachineRecord]) -> None:
        """Write the state as it was before `offset`; durable on return, if it worked."""
        if self._is_writing:
            return
        with suppress(LogError):
            snapshot.write(self._disk, self._folder, offset, self._encoded(records), MACHINE)
            self._remove_old()

    def drop(self) -> None:
        """Remove what there is, for it grows old from here on; costs nothing when asked again."""
        if self._is_dropped or self._is_writing:
            return
        self._is_dropped = True
        with suppress(LogError):
            for offset in snapshot.offsets(self._disk, self._folder, MACHINE):
                snapshot.remove(self._disk, self._folder, offset, MACHINE)

    def _encoded(self, records: Iterable[MachineRecord]) -> bytes:
        self._is_dropped = False
        data = _encoder.encode(_State(FORMAT, [(r.key, r.value) for r in records]))
        self._size = len(data)
        return data

    def _remove_old(self) -> None:
        with suppress(LogError):
            for offset in snapshot.offsets(self._disk, self._folder, MACHINE)[:-1]:
                snapshot.remove(self._disk, self._folder, offset, MACHINE)
