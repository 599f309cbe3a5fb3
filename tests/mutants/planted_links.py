"""Planted bugs in how frames queue for a link; seeds on narrow links, or a test, should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_OUTBOX = "kafkaesque.net.outbox:Outbox"
_PIECES = "kafkaesque.net.pieces"

LINK_MUTANTS = (
    Mutant(
        name="small frames wait behind large ones",
        target=f"{_OUTBOX}.put",
        old="stream in self._large.streams",
        new="self._large.frames",
        world=Kind.NARROW,
    ),
    Mutant(
        name="large frames are not split",
        target=f"{_OUTBOX}._take_pieces",
        old="self.cuts and size > config.whole_bytes_max",
        new="False",
        world=Kind.NARROW,
    ),
    Mutant(
        name="an append overtakes the large one of its group",
        target=f"{_OUTBOX}.put",
        old=" or stream in self._large.streams",
        new="",
        world=Kind.NARROW,
    ),
    Mutant(
        name="a large append overtakes the small ones of its group",
        target=f"{_OUTBOX}._take_pieces",
        old="self._cutter is None and stream in self._bulk.streams",
        new="False",
        world=Kind.NARROW,
    ),
    Mutant(
        name="pieces of two frames are mixed",
        target=f"{_PIECES}:Gathering._check",
        old="head.position != self._filled or (self._filled and head.size != self._size)",
        new="False",
        world=Kind.NARROW,
    ),
    Mutant(
        name="pieces overlap",
        target=f"{_PIECES}:Cutter.next",
        old="start), body)",
        new="max(0, start - 1)), body)",
        world=Kind.NARROW,
    ),
    Mutant(
        name="an answer to a heartbeat resends appends that are still queued",
        target="kafkaesque.raft.leadership:Leadership.step",
        old="lacks and self._raft.is_sending(message.source)",
        new="False",
        world=Kind.NARROW,
    ),
)
