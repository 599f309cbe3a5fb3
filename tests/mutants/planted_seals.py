"""Planted bugs in what distinguishes damaged from whole segments; scripted runs should notice."""

from tests.mutants.mutation import Mutant

_SEALS = "kafkaesque.log.seals"
_SEGMENTS = "kafkaesque.log.segments:Segments"
_KNOWN = "kafkaesque.log.known_segments:KnownSegments"
_KEEPER = "kafkaesque.broker.partition.producer_keeper:ProducerKeeper"

SEAL_MUTANTS = (
    Mutant(
        name="a truncated segment keeps its seal",
        target=f"{_SEGMENTS}.truncate",
        old="self._forget_now(self.seals.bases_from(segment.base))",
        new="pass",
    ),
    Mutant(
        name="only the new file of a replaced segment has a seal",
        target=f"{_SEALS}:Seals.expect",
        old="now if seal in now else (*now, seal)",
        new="(seal,)",
    ),
    Mutant(
        name="seals beyond the synced point are kept",
        target=f"{_KNOWN}.seal_again",
        old="if behind:",
        new="if False:",
    ),
    Mutant(
        name="a start compares only sizes",
        target=f"{_KNOWN}._compare",
        old="is_like(segment.file, segment.size, one)",
        new="segment.size == one.bytes",
    ),
    Mutant(
        name="compaction seals a damaged offset",
        target="kafkaesque.log.compaction:_Pass._check_seal",
        old="elif not any(is_same(found, seal) for seal in seals):",
        new="elif False:",
    ),
    Mutant(
        name="a lost part of a segment reads like a hole",
        target="kafkaesque.log.segment:Segment._check_ended",
        old="if self.damage is not None:",
        new="if False:",
    ),
    Mutant(
        name="compaction continues behind a damaged segment",
        target=f"{_SEGMENTS}.compactable",
        old="segment.damage is None",
        new="True",
    ),
    Mutant(
        name="the scrub does not report what it found",
        target="kafkaesque.broker.replication.scrubber:Scrubber._found",
        old="replica.damaged(error, bad.offset)",
        new="pass",
    ),
    Mutant(
        name="the scrub ignores seals",
        target="kafkaesque.log.segment_check:check_segment",
        old="if seals and all(not is_same(seal, one) for one in seals):",
        new="if False:",
    ),
    Mutant(
        name="a follower that finds damage loses its vote",
        target=f"{_KEEPER}._follow_on",
        old="self._stuck_at = self._applied",
        new="self._replica.stop(error)",
    ),
    Mutant(
        name="the only replica does not lead if it cannot rebuild its producers",
        target=f"{_KEEPER}._catch_up",
        old="if not self._replica.is_alone:",
        new="if True:",
    ),
)
