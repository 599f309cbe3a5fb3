"""Random lives of a partition's share groups: what may never happen, whatever gets lost.

The state's coordinator loses answers, an administrator interferes, leaders die. The oracle knows
what was confirmed and who holds what.
"""

import random
from collections import defaultdict
from functools import partial

import pytest

from kafkaesque.broker.queues.partition_shares import RETRY_MS
from kafkaesque.errors import KafkaesqueError, NotCoordinator, NotLeader
from kafkaesque.machines.queues.queue_errors import InvalidRecordState
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from kafkaesque.sim.inode import CrashPolicy
from tests.broker.share_houses import LOCK_MS, House

GROUPS = ("g", "h")
MEMBERS = ("a", "b", "c")
STEPS = 120
RECORDS_MAX = 400
QUIET_ROUNDS = 200


class Life:
    """One partition, two groups with three members each, and an oracle."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.house = House()
        for group in GROUPS:
            self.house.set(
                group, share_partition_max_record_locks=100, share_delivery_count_limit=100
            )
        self.end = 0
        self.held: dict[str, dict[int, tuple[str, int]]] = {group: {} for group in GROUPS}
        """By group and offset: the member, and when its lock runs out."""
        self.confirmed: dict[str, set[int]] = {group: set() for group in GROUPS}
        self.asked: dict[str, set[int]] = {group: set() for group in GROUPS}
        """What some member settled for good, whether that was confirmed or not."""
        self.unanswered: dict[int, str] = {}
        self.acks = 0
        self.house.desk.is_open = False

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def produce(self) -> None:
        count = self.chance.randint(1, 20)
        if self.end + count <= RECORDS_MAX:
            self.house.write(count)
            self.end += count

    def take(self) -> None:
        group, member = self.chance.choice(GROUPS), self.chance.choice(MEMBERS)
        count = self.chance.choice((1, 5, 50))
        try:
            found = self.house.take(count, member=member, group=group)
        except NotLeader:
            return
        now_ms, held = self.house.clock.ms, self.held[group]
        taken = [offset for first, last, _ in found for offset in range(first, last + 1)]
        assert len(taken) <= count
        assert taken == sorted(set(taken))
        for offset in taken:
            assert offset < self.end
            assert offset not in self.confirmed[group], "what was confirmed does not come again"
            holder = held.get(offset)
            assert holder is None or holder[1] <= now_ms, "nobody else holds it"
            held[offset] = member, now_ms + LOCK_MS

    def settle(self) -> None:
        group, member = self.chance.choice(GROUPS), self.chance.choice(MEMBERS)
        now_ms = self.house.clock.ms
        mine = sorted(
            offset
            for offset, (holder, due_ms) in self.held[group].items()
            if holder == member and due_ms > now_ms
        )
        some = sorted(self.chance.sample(mine, min(len(mine), self.chance.randint(1, 8))))
        if not some:
            return
        kinds = {n: self.chance.choice((Ack.ACCEPT, Ack.REJECT, Ack.RELEASE)) for n in some}
        number = self.acks = self.acks + 1
        self.unanswered[number] = group
        batches = [AckBatch(offset, offset, (kind,)) for offset, kind in kinds.items()]
        done = partial(self.settled, number, group, kinds)
        try:
            self.house.shares.settle(group, member, batches, done)
        except (InvalidRecordState, NotCoordinator):
            # Only if the state was lost with its leader; then nobody holds anything.
            raise AssertionError("a member holds what it was given") from None
        for offset, kind in kinds.items():
            self.held[group].pop(offset)
            if kind is not Ack.RELEASE:
                self.asked[group].add(offset)

    def settled(
        self, number: int, group: str, kinds: dict[int, Ack], error: KafkaesqueError | None
    ) -> None:
        assert self.unanswered.pop(number) == group, "an acknowledgement is answered once"
        if error is None:
            self.confirmed[group].update(n for n, kind in kinds.items() if kind is not Ack.RELEASE)

    def answer(self) -> None:
        if self.house.desk.questions:
            self.house.desk.answer()

    def lose(self) -> None:
        if self.house.desk.questions:
            self.house.desk.lose(is_done=self.chance.random() < 0.5)

    def drop(self) -> None:
        group, member = self.chance.choice(GROUPS), self.chance.choice(MEMBERS)
        self.house.shares.release(group, member)
        held = self.held[group]
        self.held[group] = {n: one for n, one in held.items() if one[0] != member}

    def pass_time(self) -> None:
        self.house.pass_ms(self.chance.choice((10, RETRY_MS, LOCK_MS // 2, LOCK_MS)))

    def fail_over(self) -> None:
        self.house.crash_and_start(CrashPolicy.KEEP_ALL)
        self.house.shares.close()
        assert not self.unanswered, "nobody waits for a leader that is gone"
        self.house.desk.questions.clear()  # the answers would go to the old one
        self.house.shares = self.house.new_shares()
        for held in self.held.values():
            held.clear()

    def until_quiet(self) -> None:
        """Let every question be answered."""
        for _ in range(QUIET_ROUNDS):
            while self.house.desk.questions:
                self.house.desk.answer()
            self.house.pass_ms(RETRY_MS)
            if not self.house.desk.questions and not self.unanswered:
                return
        raise AssertionError("questions have no end")

    # ── the whole life ───────────────────────────────────────────────────────────────────────

    def live(self, *, is_ordered: bool) -> None:
        steps = {
            self.produce: 4,
            self.take: 8,
            self.settle: 12,
            self.answer: 10,
            self.lose: 3,
            self.drop: 1,
            self.pass_time: 2,
        }
        if not is_ordered:
            steps |= {self.fail_over: 1}
        for _ in range(STEPS):
            self.chance.choices(list(steps), list(steps.values()))[0]()
            self.forget_expired()
        self.until_quiet()
        self.finish()

    def forget_expired(self) -> None:
        now_ms = self.house.clock.ms
        for group, held in self.held.items():
            self.held[group] = {n: one for n, one in held.items() if one[1] > now_ms}

    def finish(self) -> None:
        """In peace every record that nobody settled is delivered, and all are settled."""
        self.house.desk.is_open = True
        for group in GROUPS:
            for member in MEMBERS:
                self.house.shares.release(group, member)
        self.until_quiet()
        got: dict[str, set[int]] = defaultdict(set)
        for group in GROUPS:
            for _ in range(QUIET_ROUNDS):
                found = self.house.take(100, member="last", group=group)
                if not found:
                    break
                for first, last, _count in found:
                    got[group].update(range(first, last + 1))
                    assert self.house.settle(first, last, member="last", group=group) == [None]
            assert not got[group] & self.confirmed[group]
            assert got[group] | self.asked[group] == set(range(self.end))
            assert self.house.desk.start(group) == self.end


@pytest.mark.parametrize("seed", range(60))
def test_what_is_confirmed_stays_so_and_everything_else_comes(seed: int) -> None:
    Life(seed).live(is_ordered=False)


@pytest.mark.parametrize("seed", range(1_000, 1_030))
def test_in_one_term_nobody_gets_what_another_holds(seed: int) -> None:
    Life(seed).live(is_ordered=True)
