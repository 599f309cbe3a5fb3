"""What share groups must keep, whichever broker leads: an oracle with an entry for each record.

- a record whose accept or reject was confirmed is never delivered again;
- two members never hold one record in one term, unless the first one's lock ran out;
- in one term each delivery of a record counts one more, and none is beyond the limit;
- below a group's start everything was settled or given up;
- the written start never goes back, except when a new leader adopts a log that lost its end.

An acknowledgement without an answer may hold or not; the next delivery shows which.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.queues.partition_shares import PartitionShares, Taken
from kafkaesque.errors import KafkaesqueError, OutcomeUnknown
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.queue_errors import FencedTerm
from kafkaesque.machines.queues.share_commands import Adopt, Adopted, ShareCommand, WriteState
from kafkaesque.machines.queues.share_records import (
    AdoptedKey,
    AdoptedSaved,
    Place,
    StartKey,
    StartSaved,
    from_record,
)
from kafkaesque.machines.queues.share_values import Ack, AckBatch, ShareLimits
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView, split_batches
from kafkaesque.sim.checks import GroupChecks, Violation
from kafkaesque.types import NodeId, Offset, Term

FINAL = (Ack.ACCEPT, Ack.REJECT)


class _Record:
    """What is known of one record in one group."""

    __slots__ = (
        "count",
        "deliveries",
        "due_ms",
        "holder",
        "may_be_done",
        "settled",
        "term",
        "value",
    )

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.term: Term = 0
        self.holder: str | None = None
        self.due_ms = 0
        self.count = 0
        """The last delivery of this term."""
        self.deliveries = 0
        self.settled: Ack | None = None
        """What was confirmed."""
        self.may_be_done = False
        """Whether it was settled without an answer, or may have been given up."""


class ShareOracle:
    """All deliveries of one topic to all groups, and what was answered."""

    def __init__(self, count: Callable[[str], None], limits: ShareLimits) -> None:
        self.limits = limits
        self._count = count
        self._records: dict[tuple[str, int, Offset], _Record] = {}
        self._watched: set[tuple[NodeId, int]] = set()
        self._adopters: dict[Place, NodeId] = {}

    # ── deliveries ───────────────────────────────────────────────────────────────────────────

    def took(
        self, shares: PartitionShares, group: str, member: str, taken: Taken, now_ms: int
    ) -> list[Offset]:
        """Check what a member was given; return the offsets."""
        values = {
            record.offset: record.value or b""
            for view in split_batches(taken.data)
            for record in read_records(view)
        }
        offsets: list[Offset] = []
        for one in taken.acquired:
            for offset in range(one.first, one.last + 1):
                if offset not in values:
                    raise Violation(f"{member} was given offset {offset}, which is no record")
                key = group, shares.place[1], offset
                self._delivered(key, shares.term, member, one.count, values[offset], now_ms)
                offsets.append(offset)
        return offsets

    def _delivered(
        self,
        key: tuple[str, int, Offset],
        term: Term,
        member: str,
        count: int,
        value: bytes,
        now_ms: int,
    ) -> None:
        record = self._records.get(key)
        if record is None or record.value != value:  # the log lost its end, and uses offsets again
            record = self._records[key] = _Record(value)
        what = f"offset {key[2]} of partition {key[1]} in {key[0]}"
        if record.settled is not None:
            raise Violation(f"{what} was delivered after {record.settled.name} was confirmed")
        if record.term == term:
            if record.holder is not None and now_ms < record.due_ms:
                raise Violation(f"{what} was given to {member}, and {record.holder} holds it")
            if count != record.count + 1:
                raise Violation(f"{what}: delivery {record.count} is followed by {count}")
            if record.holder is not None:
                self._count("share locks expired")
        if not 1 <= count <= min(record.deliveries + 1, self.limits.delivery_max):
            raise Violation(f"{what}: this cannot be delivery {count}")
        self._count("shared records redelivered" if record.deliveries else "shared records")
        record.term, record.holder, record.count = term, member, count
        record.due_ms = now_ms + self.limits.lock_ms
        record.deliveries += 1
        record.may_be_done = count == self.limits.delivery_max

    # ── acknowledgements ─────────────────────────────────────────────────────────────────────

    def settle(
        self,
        shares: PartitionShares,
        group: str,
        member: str,
        acks: Sequence[AckBatch],
        now_ms: int,
    ) -> None:
        """Let a member settle, and note what becomes of it; raises what the broker does."""
        share = next((one for one in shares.groups() if one.group == group), None)
        start = 0 if share is None else share.start
        kinds = {offset: kind for batch in acks for offset, kind in _kinds(batch)}
        found = {
            offset: record
            for offset in kinds
            if (record := self._records.get((group, shares.place[1], offset))) is not None
        }
        before = {offset: (one.may_be_done, one.deliveries) for offset, one in found.items()}
        for offset, record in found.items():
            if offset < start and record.settled is None and not record.may_be_done:
                raise Violation(f"the start of {group} is beyond {offset}, which is not settled")
            record.may_be_done |= kinds[offset] in FINAL

        def done(error: KafkaesqueError | None) -> None:
            self._count("shares settled" if error is None else "shares of unknown outcome")
            for offset, record in found.items():
                if error is not None or offset < start or kinds[offset] not in FINAL:
                    continue
                if record.deliveries != before[offset][1]:
                    raise Violation(f"offset {offset} was settled, and delivered before that held")
                record.settled = kinds[offset]

        try:
            shares.settle(group, member, acks, done)
        except KafkaesqueError:
            for offset, record in found.items():
                record.may_be_done = before[offset][0]
            raise
        for offset, record in found.items():
            if offset < start:
                continue
            if record.holder != member or record.term != shares.term:
                raise Violation(f"{member} has settled offset {offset}, which it does not hold")
            if kinds[offset] is Ack.RENEW:
                record.due_ms = now_ms + self.limits.lock_ms
            else:
                record.holder = None

    def released(self, shares: PartitionShares, group: str, member: str) -> None:
        """Note that a member's session ended where a partition is led: it holds nothing there."""
        for share in shares.groups():
            if share.group == group and member in share.holders():
                raise Violation(f"{member} has left, and still holds records")
        for (of_group, index, _), record in self._records.items():
            is_there = (of_group, index, record.term) == (group, shares.place[1], shares.term)
            if is_there and record.holder == member:
                record.holder = None

    def accounted_for(self, group: str, index: int, values: Mapping[Offset, bytes | None]) -> None:
        """Check that each of these committed records was settled or given up."""
        for offset, value in values.items():
            record = self._records.get((group, index, offset))
            if record is None or record.value != (value or b""):
                raise Violation(f"{group} never got offset {offset} of partition {index}")
            if record.settled is None and not record.may_be_done:
                where = f"offset {offset} of partition {index}"
                raise Violation(f"{group} is done with {where}, which nobody settled")

    # ── the state's coordinators ─────────────────────────────────────────────────────────────

    def watch(self, broker: Broker, life: int) -> None:
        """See what this broker asks the coordinators of share state from now on."""
        if (broker.node, life) in self._watched:
            return
        self._watched.add((broker.node, life))
        desk = broker.shares.desk
        ask = desk.ask

        def watched(place: Place, command: ShareCommand, to: Callable[[Any], None]) -> None:
            def told(answer: object) -> None:
                self._answered(broker.node, place, command, answer)
                to(answer)

            ask(place, command, told)

        desk.ask = watched  # type: ignore[method-assign]

    def _answered(self, node: NodeId, place: Place, command: ShareCommand, answer: object) -> None:
        if isinstance(command, Adopt) and isinstance(answer, Adopted):
            before = self._adopters.get(place, node)
            self._adopters[place] = node
            self._count("share states adopted")
            if before != node:
                self._count("share states adopted by another broker")
        elif isinstance(answer, FencedTerm):
            is_write = isinstance(command, WriteState)
            self._count("share writes of old terms" if is_write else "late share adoptions")
        elif isinstance(answer, OutcomeUnknown):
            self._count("share writes of unknown outcome")


def check_starts(checks: GroupChecks) -> None:
    """Check one partition of the state: no group's start ever goes back without a reason."""
    starts: dict[StartKey, StartSaved] = {}
    for _, entry in sorted(checks.committed.items()):
        if not isinstance(entry.payload, bytes | bytearray | memoryview) or not entry.payload:
            continue
        adopted: dict[Place, Offset] = {}
        for one in read_records(BatchView(entry.payload)):
            key, value = from_record(MachineRecord(one.key or b"", one.value))
            if isinstance(key, AdoptedKey) and isinstance(value, AdoptedSaved):
                adopted[key.topic_id, key.partition] = value.first
            if not isinstance(key, StartKey):
                continue
            if not isinstance(value, StartSaved):
                starts.pop(key, None)
                continue
            before = starts.get(key, value)
            lost_from = adopted.get((key.topic_id, key.partition))
            is_back = value.generation == before.generation and value.start < before.start
            if is_back and value.start != lost_from:
                text = f"from {before.start} to {value.start}"
                raise Violation(f"the start of {key.group} went back {text}")
            starts[key] = value


def _kinds(batch: AckBatch) -> list[tuple[Offset, Ack]]:
    offsets = range(batch.first, batch.last + 1)
    if len(batch.kinds) == 1:
        return [(offset, batch.kinds[0]) for offset in offsets]
    return list(zip(offsets, batch.kinds, strict=True))
