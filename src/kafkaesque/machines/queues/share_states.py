"""The state of share groups in the partitions that one partition of `__share_group_state` keeps.

A machine (`machines/machine.py`) whose decisions come with answers, like those of
`machines/groups/groups.py`. Deliveries themselves are decided where the data is, by the leader of
each data partition (`share_partition.py`). This machine only keeps what it writes, and refuses
leaders and generations that have been replaced.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.offset_bits import CHUNK_OFFSETS, CHUNK_SHIFT, from_bitmap
from kafkaesque.machines.queues.queue_errors import (
    FencedGeneration,
    FencedTerm,
    InvalidShareState,
    ShareStateFull,
)
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    Adopted,
    AdoptedBefore,
    DeleteShareGroup,
    SetStart,
    ShareCommand,
    ShareGroupDeleted,
    ShareOffsets,
    ShareStart,
    ShareStarts,
    StartSet,
    WriteState,
    Written,
)
from kafkaesque.machines.queues.share_records import (
    AdoptedKey,
    AdoptedSaved,
    ChunkKey,
    ChunkSaved,
    Place,
    StartKey,
    StartSaved,
    from_record,
    to_record,
)
from kafkaesque.machines.queues.void_state import without_offsets_from
from kafkaesque.types import Offset


class ShareStateLimits(Struct, frozen=True, kw_only=True):
    """What one machine may hold."""

    bytes_max: int = 64 << 20
    """Keys and values of all records: 1 GiB for the 16 partitions of the topic."""
    groups_max: int = 1_000
    """Groups on one data partition."""


class _Group:
    """One group on one partition."""

    __slots__ = ("records", "start")

    def __init__(self) -> None:
        self.start: StartSaved | None = None
        self.records: dict[bytes, bytes] = {}
        """The newest value of each key, the start's among them."""


class _PlaceState:
    """One data partition."""

    __slots__ = ("adopted", "groups")

    def __init__(self) -> None:
        self.adopted: AdoptedSaved | None = None
        self.groups: dict[str, _Group] = {}

    def records(self) -> Iterator[MachineRecord]:
        """Return what the groups have written."""
        for group in self.groups.values():
            for key, value in group.records.items():
                yield MachineRecord(key, value)


class ShareStates:
    """The state that follows from all records so far."""

    def __init__(self, limits: ShareStateLimits) -> None:
        self._limits = limits
        self._places: dict[Place, _PlaceState] = {}
        self._bytes = 0

    @property
    def state_bytes(self) -> int:
        """Size of all keys and values."""
        return self._bytes

    # ── commands ─────────────────────────────────────────────────────────────────────────────

    def decide(self, command: ShareCommand, to: ReplyTo, now: Now) -> Decision:
        """Decide on any command; refusals are raised."""
        match command:
            case Adopt():
                return self.adopt(command, to)
            case WriteState():
                return self.write(command, to)
            case SetStart():
                return self.set_start(command, to, now)
            case DeleteShareGroup():
                return self.delete(command, to)
            case ShareOffsets():
                return self.offsets(command, to)

    def adopt(self, command: Adopt, to: ReplyTo) -> Decision:
        """Hand the state of a partition to its new leader, without what is void by now."""
        state = self._places.get(command.place, _PlaceState())
        adopted = state.adopted
        asked = command.term, command.serial
        if adopted is not None and asked < (adopted.term, adopted.serial):
            raise FencedTerm(f"the leader of term {adopted.term} has adopted the partition")
        out = Decision(is_one_batch=True)
        written = dict(state.records())
        key = AdoptedKey(*command.place)
        if adopted is None or adopted.term < command.term:
            if adopted is not None and adopted.term < command.since:
                # Leaders in between did not adopt it, and may have written where offsets were lost.
                out.reply(to, AdoptedBefore(term=adopted.term))
                return out
            # Only once: later the leader itself has written at these offsets.
            taken = AdoptedSaved(command.term, command.first, command.serial)
            out.records.append(to_record(key, taken))
            for record in without_offsets_from(command.first, state.records()):
                out.records.append(record)
                if record.value is None:
                    del written[record.key]
                else:
                    written[record.key] = record.value
        elif adopted.serial < command.serial:
            taken = AdoptedSaved(command.term, adopted.first, command.serial)
            out.records.append(to_record(key, taken))
        out.reply(to, Adopted(records=tuple(MachineRecord(*item) for item in written.items())))
        return out

    def write(self, command: WriteState, to: ReplyTo) -> Decision:
        """Write what the leader of a partition has changed."""
        state = self._places.get(command.place)
        adopted = None if state is None else state.adopted
        asked = command.term, command.serial
        if state is None or adopted is None or asked != (adopted.term, adopted.serial):
            raise FencedTerm(f"term {command.term} has not adopted the partition, or a newer has")
        by_group = _by_group(command)
        for group, generation in command.generations.items():
            known = state.groups.get(group)
            if known is None and group not in command.opens:
                raise FencedGeneration(f"group {group} was deleted: it must open again")
            if generation != _generation(known):
                raise FencedGeneration(f"an administrator has set the start of group {group}")
        self._check_room(command.place, by_group)
        out = Decision(records=list(command.records), is_one_batch=True)
        out.reply(to, Written())
        return out

    def set_start(self, command: SetStart, to: ReplyTo, now: Now) -> Decision:
        """Let a group begin again; leaders that do not know it yet cannot write any more."""
        key = StartKey(*command.place, command.group)
        known = self._group(command.place, command.group)
        before = None if known is None else known.start
        if before is None:
            # Unlike any generation before the group was deleted, which a leader may still have.
            after = StartSaved(generation=now.wall_ms, start=command.offset, opened_ms=now.wall_ms)
        else:
            generation = before.generation + 1
            after = replace(before, generation=generation, start=command.offset)
        start = to_record(key, after)
        out = Decision(records=[start], is_one_batch=True)
        if known is not None:
            gone = (MachineRecord(other, None) for other in known.records if other != start.key)
            out.records.extend(gone)
        self._check_room(command.place, {command.group: out.records})
        out.reply(to, StartSet(generation=after.generation))
        return out

    def delete(self, command: DeleteShareGroup, to: ReplyTo) -> Decision:
        """Delete a group; in each partition its start goes last."""
        out, places = Decision(), []
        for place in self._places if command.places is None else command.places:
            known = self._group(place, command.group)
            if known is not None:
                places.append(place)
                out.records.extend(_tombstones(place, command.group, known))
        out.reply(to, ShareGroupDeleted(places=tuple(places)))
        return out

    def offsets(self, command: ShareOffsets, to: ReplyTo) -> Decision:
        """Return where a group begins."""
        places = self._places if command.places is None else command.places
        starts: dict[Place, ShareStart] = {}
        for place in places:
            known = self._group(place, command.group)
            if known is not None and known.start is not None:
                adopted = self._places[place].adopted
                starts[place] = ShareStart(
                    offset=known.start.start,
                    done=_done_above(known.start.start, known.records),
                    term=0 if adopted is None else adopted.term,
                )
        out = Decision()
        out.reply(to, ShareStarts(starts=starts))
        return out

    def _group(self, place: Place, group: str) -> _Group | None:
        state = self._places.get(place)
        return None if state is None else state.groups.get(group)

    def _check_room(self, place: Place, by_group: Mapping[str, Sequence[MachineRecord]]) -> None:
        """Refuse to grow beyond a limit; what makes the state smaller is never refused."""
        groups = self._places.get(place, _PlaceState()).groups
        new = by_group.keys() - groups.keys()
        if new and len(groups) + len(new) > self._limits.groups_max:
            raise ShareStateFull(f"a partition has at most {self._limits.groups_max} share groups")
        more = sum(
            _growth(groups.get(group), record)
            for group, records in by_group.items()
            for record in records
        )
        if more > 0 and self._bytes + more > self._limits.bytes_max:
            raise ShareStateFull(f"the state of share groups takes {self._bytes} bytes: it is full")

    # ── the coordinator ──────────────────────────────────────────────────────────────────────

    def tick(self, now: Now) -> Decision:
        """Do nothing: nothing here depends on time."""
        return Decision()

    def expire(self, now: Now) -> Decision:
        """Do nothing: what groups have done holds until they are deleted."""
        return Decision()

    def forget_topic(self, topic_id: bytes) -> Decision:
        """Delete everything about a topic; its leaders cannot write any more."""
        out = Decision()
        for place, state in self._places.items():
            if place[0] != topic_id:
                continue
            if state.adopted is not None:
                out.records.append(to_record(AdoptedKey(*place), None))
            for name, group in state.groups.items():
                out.records.extend(_tombstones(place, name, group))
        return out

    def waiting(self) -> tuple[ReplyTo, ...]:
        """Return nothing: every command is answered when it is decided."""
        return ()

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for an unknown one."""
        key, value = from_record(record)
        place = (key.topic_id, key.partition)
        state = self._places.setdefault(place, _PlaceState())
        if isinstance(key, AdoptedKey):
            assert value is None or isinstance(value, AdoptedSaved), "each key has its own value"
            state.adopted = value
        else:
            group = state.groups.setdefault(key.group, _Group())
            self._bytes += _growth(group, record)
            if record.value is None:
                group.records.pop(record.key, None)
            else:
                group.records[record.key] = record.value
            if isinstance(key, StartKey):
                assert value is None or isinstance(value, StartSaved), "each key has its own value"
                group.start = value
            if not group.records:
                del state.groups[key.group]
        if state.adopted is None and not state.groups:
            del self._places[place]

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the state."""
        for place, state in self._places.items():
            if state.adopted is not None:
                yield to_record(AdoptedKey(*place), state.adopted)
            yield from state.records()


def _by_group(command: WriteState) -> dict[str, list[MachineRecord]]:
    """Return the records of each group; raises InvalidShareState for those of others."""
    out: dict[str, list[MachineRecord]] = {group: [] for group in command.generations}
    for record in command.records:
        key, value = from_record(record)
        if isinstance(key, AdoptedKey) or (key.topic_id, key.partition) != command.place:
            raise InvalidShareState("a leader writes the state of groups on its own partition")
        if key.group not in out:
            raise InvalidShareState(f"the write says no generation of group {key.group}")
        if isinstance(value, StartSaved) and value.generation != command.generations[key.group]:
            raise InvalidShareState(f"the start of group {key.group} has another generation")
        out[key.group].append(record)
    return out


def _done_above(start: Offset, records: Mapping[bytes, bytes]) -> int:
    """Return how many offsets from the start on are done."""
    count = 0
    for item in records.items():
        key, value = from_record(MachineRecord(*item))
        if isinstance(key, ChunkKey) and isinstance(value, ChunkSaved):
            below = min(max(start - (key.chunk << CHUNK_SHIFT), 0), CHUNK_OFFSETS)
            count += (from_bitmap(value.done) >> below).bit_count()
    return count


def _generation(group: _Group | None) -> int:
    """Return the generation that writes must have; a group that opens has the first."""
    return 0 if group is None or group.start is None else group.start.generation


def _growth(group: _Group | None, record: MachineRecord) -> int:
    """Return by how many bytes a record makes the state larger."""
    before = None if group is None else group.records.get(record.key)
    return _size(record.key, record.value) - _size(record.key, before)


def _size(key: bytes, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value)


def _tombstones(place: Place, name: str, group: _Group) -> Iterator[MachineRecord]:
    """Yield what deletes a group on a partition: a group without its start would be lost state."""
    start = to_record(StartKey(*place, name), None)
    for key in group.records:
        if key != start.key:
            yield MachineRecord(key, None)
    yield start
