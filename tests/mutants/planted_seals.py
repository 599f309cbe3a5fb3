"""Planted bugs in what tells damaged segments from whole ones; scripted lives are to notice."""

from tests.mutants.mutation import Mutant

_SEALS = "kafkaesque.log.seals"
_SEGMENTS = "kafkaesque.log.segments:Segments"
_KNOWN = "kafkaesque.log.known_segments:KnownSegments"
_KEEPER = "kafkaesque.broker.partition.producer_keeper:ProducerKeeper"

SEAL_MUTANTS = (
    Mutant(
        name="a segment that was cut keeps its seal",
        target=f"{_SEGMENTS}.truncate",
        old="self._forget_now(self.seals.bases_from(segment.base))",
        new="pass",
    ),
    Mutant(
        name="before a segment is replaced only the new file has a seal",
        target=f"{_SEALS}:Seals.expect",
        old="now if seal in now else (*now, seal)",
        new="(seal,)",
    ),
    Mutant(
        name="seals of what was behind the synced point are kept",
        target=f"{_KNOWN}.seal_again",
        old="if behind:",
        new="if False:",
    ),
    Mutant(
        name="a start compares sizes only",
        target=f"{_KNOWN}._compare",
        old="is_like(segment.file, segment.size, one)",
        new="segment.size == one.bytes",
    ),
    Mutant(
        name="compaction seals an offset that was damaged",
        target="kafkaesque.log.compaction:_Pass._check_seal",
        old="elif not any(is_same(found, seal) for seal in seals):",
        new="elif False:",
    ),
    Mutant(
        name="what is lost of a segment reads like a hole",
        target="kafkaesque.log.segment:Segment._check_ended",
        old="if self.damage is not None:",
        new="if False:",
    ),
    Mutant(
        name="compaction goes on behind a damaged segment",
        target=f"{_SEGMENTS}.compactable",
        old="segment.damage is None",
        new="True",
    ),
    Mutant(
        name="the scrub tells nobody what it found",
        target="kafkaesque.broker.replication.scrubber:Scrubber._found",
        old="replica.damaged(error, bad.offset)",
        new="pass",
    ),
    Mutant(
        name="the scrub compares with no seal",
        target="kafkaesque.log.segment_check:check_segment",
        old="if seals and all(not is_same(seal, one) for one in seals):",
        new="if False:",
    ),
    Mutant(
        name="a follower that finds damage votes no more",
        target=f"{_KEEPER}._follow_on",
        old="self._stuck_at = self._applied",
        new="self._replica.stop(error)",
    ),
    Mutant(
        name="the only replica does not lead if it cannot read of all producers",
        target=f"{_KEEPER}._catch_up",
        old="if not self._replica.is_alone:",
        new="if True:",
    ),
)
