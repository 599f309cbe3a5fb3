"""Deliveries to a share group agree with a model that has one entry for each offset."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_values import Ack, AckBatch, ShareLimits
from tests.machines.share_desk import GROUP, LIMITS, PLACE, Store, partition
from tests.machines.share_oracle import Oracle

MEMBERS = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from(list(Ack))
PARTS = st.lists(st.tuples(st.sampled_from([0, 0, 1, 3]), st.integers(1, 40)), max_size=4)
"""Records in the log: how many offsets are missing before, and how many are there."""


def outcome(call: Callable[[], object]) -> object:
    """Return what a call returns, or the kind of its refusal."""
    try:
        return call()
    except KafkaesqueError as refusal:
        return type(refusal)


class ShareModel(RuleBasedStateMachine):
    """Members that take and settle, time that passes, and leaders that crash."""

    @initialize(
        first=st.sampled_from([0, 1_000, 2_040]),
        delivery_max=st.integers(1, 4),
        window=st.sampled_from([5, 100, 3_000]),
        locks_max=st.sampled_from([1, 60, 5_000]),
    )
    def opens(self, first: int, delivery_max: int, window: int, locks_max: int) -> None:
        limits = replace(LIMITS, delivery_max=delivery_max, window=window, locks_max=locks_max)
        self.ours = partition(first, limits)
        self.oracle = Oracle(first, limits)
        self.store = Store()
        self.now_ms = 1_000

    @rule(
        member=MEMBERS,
        parts=PARTS,
        before=st.integers(0, 9),
        after=st.sampled_from([None, 0, 2]),
        records_max=st.sampled_from([0, 1, 7, 500]),
    )
    def takes(
        self,
        member: str,
        parts: list[tuple[int, int]],
        before: int,
        after: int | None,
        records_max: int,
    ) -> None:
        at = self.oracle.next_available()
        assert self.ours.next_available() == at
        spans: list[tuple[int, int]] = []
        end = at or 0
        for missing, there in parts:
            # A batch may begin before the offset that was looked for.
            first = end + missing if spans or missing else max(end - before, 0)
            end += missing + there
            spans.append((first, end - 1))
        read_to = None if after is None else end + after
        assert self.ours.take(
            member, spans, records_max, self.now_ms, read_to=read_to
        ) == self.oracle.take(member, spans, records_max, self.now_ms, read_to=read_to)

    @rule(
        member=MEMBERS, ahead=st.integers(0, 30), missing=st.integers(0, 3), there=st.integers(1, 9)
    )
    def takes_after_a_read_that_took_long(
        self, member: str, ahead: int, missing: int, there: int
    ) -> None:
        at = self.oracle.start + ahead
        spans = [(at + missing, at + missing + there - 1)]
        assert self.ours.take(member, spans, 500, self.now_ms, read_from=at) == self.oracle.take(
            member, spans, 500, self.now_ms, read_from=at
        )

    @rule(far=st.integers(1, 5_000), member=MEMBERS, there=st.integers(1, 2_500))
    def takes_much_after_a_wide_hole(self, far: int, member: str, there: int) -> None:
        at = (self.oracle.next_available() or 0) + far
        spans = [(at, at + there - 1)]
        assert self.ours.take(member, spans, 5_000, self.now_ms) == self.oracle.take(
            member, spans, 5_000, self.now_ms
        )

    @rule(member=MEMBERS, data=st.data())
    def settles_what_it_holds(self, member: str, data: st.DataObject) -> None:
        mine = [n for n, held in self.oracle.held.items() if held.member == member]
        if not mine:
            return
        some = sorted(data.draw(st.sets(st.sampled_from(sorted(mine)[:300]), max_size=30)))
        kinds = data.draw(st.lists(KINDS, min_size=len(some), max_size=len(some)))
        self._settle(member, [AckBatch(n, n, (kind,)) for n, kind in zip(some, kinds, strict=True)])

    @rule(member=MEMBERS, data=st.data(), kind=KINDS, is_long=st.booleans())
    def settles_a_range(self, member: str, data: st.DataObject, kind: Ack, is_long: bool) -> None:
        mine = sorted(n for n, held in self.oracle.held.items() if held.member == member)
        if not mine:
            return
        first = data.draw(st.sampled_from(mine))
        last = first
        while last + 1 in mine and (is_long or last < first + 3):
            last += 1
        self._settle(member, [AckBatch(first, last, (kind,))])

    @rule(
        member=MEMBERS,
        ranges=st.lists(
            st.tuples(st.integers(-5, 60), st.integers(-1, 20), st.lists(KINDS, max_size=4)),
            min_size=1,
            max_size=3,
        ),
    )
    def settles_anything(self, member: str, ranges: list[tuple[int, int, list[Ack]]]) -> None:
        start = self.oracle.start
        acks = [AckBatch(start + at, start + at + more, kinds) for at, more, kinds in ranges]
        self._settle(member, acks)

    def _settle(self, member: str, acks: list[AckBatch]) -> None:
        assert outcome(lambda: self.ours.settle(member, acks, self.now_ms)) == outcome(
            lambda: self.oracle.settle(member, acks, self.now_ms)
        )

    @rule(member=MEMBERS)
    def leaves(self, member: str) -> None:
        self.ours.drop(member, self.now_ms)
        self.oracle.drop(member)

    @rule(ms=st.sampled_from([1, 400, 1_000]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(offsets_max=st.sampled_from([0, 1, 10, 5_000]))
    def locks_run_out(self, offsets_max: int) -> None:
        assert self.ours.expire(self.now_ms, offsets_max) == self.oracle.expire(
            self.now_ms, offsets_max
        )

    @rule(ahead=st.sampled_from([-1, 0, 3, 30, 1_500]))
    def the_log_loses_its_head(self, ahead: int) -> None:
        self.ours.log_starts_at(self.oracle.start + ahead)
        self.oracle.log_starts_at(self.oracle.start + ahead)

    @rule(ahead=st.sampled_from([-20, 0, 5]))
    def an_administrator_sets_the_start(self, ahead: int) -> None:
        offset = max(self.oracle.start + ahead, 0)
        self.ours.set_start(offset, self.ours.generation + 1)
        self.oracle.set_start(offset)

    @rule(
        lock_ms=st.sampled_from([10, 1_000, 3_000]),
        delivery_max=st.integers(1, 4),
        window=st.sampled_from([5, 100, 3_000]),
        locks_max=st.sampled_from([1, 60, 5_000]),
    )
    def settings_change(self, lock_ms: int, delivery_max: int, window: int, locks_max: int) -> None:
        limits = ShareLimits(
            lock_ms=lock_ms, delivery_max=delivery_max, window=window, locks_max=locks_max
        )
        self.ours.limits = self.oracle.limits = limits

    @rule()
    def changes_are_written(self) -> None:
        self.store.write(self.ours.changes())
        assert self.store.start().start == self.oracle.start
        assert self.store.start().generation == self.ours.generation
        assert self.store.done() == self.oracle.done
        assert self.store.counts() == self.oracle.counts
        assert self.ours.changes() == [], "they were written before"

    @rule()
    def another_leader_goes_on(self) -> None:
        self.changes_are_written()
        generation = self.ours.generation
        self.ours = SharePartition.restored(PLACE, GROUP, self.store.records(), self.ours.limits)
        self.oracle.crash()
        assert self.ours.generation == generation
        assert self.ours.opened_ms == 7
        assert self.ours.changes() == [], "nothing has happened since"

    @invariant()
    def both_agree(self) -> None:
        held = list(self.oracle.held.values())
        assert (self.ours.start, self.ours.next) == (self.oracle.start, self.oracle.next)
        assert self.ours.next_available() == self.oracle.next_available()
        assert self.ours.due_ms == min((each.due_ms for each in held), default=None)
        members = [each.member for each in held]
        holders = {member: members.count(member) for member in members}
        assert self.ours.holders() == holders
        view = self.ours.view(self.now_ms)
        assert (view.released, view.locked, view.done) == (
            len(self.oracle.released),
            len(held),
            len(self.oracle.done),
        )


TestShareModel = ShareModel.TestCase
TestShareModel.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
