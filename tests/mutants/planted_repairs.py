"""Planted bugs in how damaged logs are repaired; the scripted tests should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_RANGES = "kafkaesque.broker.replication.repair_ranges"
_REPAIRS = "kafkaesque.broker.cluster.repairs"
_COPIES = "kafkaesque.broker.replication.copy_query"
_REFILLS = "kafkaesque.broker.cluster.refills:Refills"
_MENDING = "kafkaesque.log.segment_repair:Mending"

REPAIR_MUTANTS = (
    Mutant(
        name="a source sends a range with noted damage",
        target=f"{_RANGES}:_refusal",
        old="if not is_whole(replica, asked.first, asked.end):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a source sends data without checking it",
        target=f"{_RANGES}:_read",
        old="read_sound(replica, asked.first, bytes_max, first_always=True, end=asked.end)",
        new="replica.log.segments.read(asked.first, bytes_max)",
        world=Kind.ROT,
    ),
    Mutant(
        name="a source sends uncommitted data",
        target=f"{_RANGES}:_refusal",
        old="if asked.end > replica.settled_offset:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="pieces are swapped in without checking them",
        target=f"{_MENDING}.add",
        old="if damage is not None:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="damage is cleared before the repair is durable",
        target=f"{_REPAIRS}:_Attempt._fill",
        old="yield from mending.finish()",
        new="replica.damage.clear(gap.base, gap.end); yield from mending.finish()",
        world=Kind.ROT,
    ),
    Mutant(
        name="uncommitted data is repaired",
        target=f"{_REPAIRS}:_settled_below",
        old="min(replica.settled_offset, replica.log.mendable_below)",
        new="replica.log.end_offset",
        world=Kind.ROT,
    ),
    Mutant(
        name="only the damaged segment of a compacted log is fetched from a peer",
        target=f"{_REPAIRS}:Repairs._mend",
        old="if replica.has_holes:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a replica leads again while damage remains",
        target="kafkaesque.broker.replication.replica:Replica.mended",
        old="not self.damage.found",
        new="True",
        world=Kind.ROT,
    ),
    Mutant(
        name="recovery does not finish an interrupted swap",
        target="kafkaesque.log.segments_recovery:finish_swaps",
        old="and wanted not in names",
        new="and False",
        world=Kind.ROT,
    ),
    Mutant(
        name="good batches behind a bad one are given up too",
        target="kafkaesque.log.log_salvage:_Scan._candidates",
        old="at = position + _MAGIC_AT",
        new="at = self._size",
        world=Kind.ROT,
    ),
    Mutant(
        name="a damaged file is not kept when its good batches are rewritten",
        target="kafkaesque.log.log_salvage:_rewrite",
        old="_put_aside(disk, group, name)",
        new="disk.remove(path)",
        world=Kind.ROT,
    ),
    Mutant(
        name="a damaged log is emptied although most other copies are not whole",
        target=f"{_COPIES}:obstacle",
        old="if not is_majority(whole, voters):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a damaged log is emptied without asking the others",
        target=f"{_REFILLS}._decide",
        old="if reason is None:",
        new="if True:",
        world=Kind.ROT,
    ),
    Mutant(
        name="two copies of a log are emptied at once",
        target=f"{_COPIES}:obstacle",
        old="for peer, condition in sorted(conditions.items()):",
        new="for peer, condition in ():",
        world=Kind.ROT,
    ),
    Mutant(
        name="a copy that is being filled counts as whole",
        target=f"{_COPIES}:tell_copy",
        old="if replica.raft.is_recovering:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a copy with damage counts as whole",
        target=f"{_COPIES}:tell_copy",
        old="elif replica.damage.found:",
        new="elif False:",
        world=Kind.ROT,
    ),
)
