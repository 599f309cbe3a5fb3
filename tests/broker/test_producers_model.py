"""Retries, lost answers and restarts: each batch is logged once, in order, at the offset answered.

The producer behaves like real ones: at most five batches in flight, and after any doubt it resends
all of them in order.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaesque.broker.partition.producers import BATCHES_REMEMBERED
from kafkaesque.broker.partition.refusals import TAKEOVER_MS_MAX
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.types import Offset
from tests.broker.partitions import PartitionNode, build, numbered

NEAR_THE_LAST_SEQUENCE = (1 << 31) - 20
MASK = (1 << 31) - 1


class _Sent:
    """A batch in flight: its contents, and the offset that the broker answered."""

    def __init__(self, sequence: int, values: tuple[bytes, ...]) -> None:
        self.batch = numbered(sequence, *values)
        self.values = values
        self.offsets: set[Offset] = set()
        self.outcomes: list[Outcome] = []


class ExactlyOnce(RuleBasedStateMachine):
    """One producer and one broker that crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.node = PartitionNode(holds_syncs=True)
        self.sequence = NEAR_THE_LAST_SEQUENCE
        self.count = 0
        self.all: list[_Sent] = []
        self.on_their_way: list[_Sent] = []

    @precondition(lambda self: len(self.on_their_way) < BATCHES_REMEMBERED)
    @rule(records=st.integers(1, 4))
    def send(self, records: int) -> None:
        values = tuple(b"%d" % (self.count + place) for place in range(records))
        sent = _Sent(self.sequence, values)
        self.sequence = (self.sequence + records) & MASK
        self.count += records
        self.all.append(sent)
        self.on_their_way.append(sent)
        self._to_broker(sent)

    @rule(first=st.integers(0, BATCHES_REMEMBERED - 1))
    def resend(self, first: int) -> None:
        """Resend from this one on: all earlier ones are in the log, so there is no gap."""
        for sent in self.on_their_way[first:]:
            self._to_broker(sent)

    @rule()
    def others_send(self) -> None:
        self.node.send(build(b"other"))

    @rule()
    def sync(self) -> None:
        self.node.sync()

    @rule()
    def receive_answers(self) -> None:
        while self.on_their_way and Outcome.COMMITTED in self.on_their_way[0].outcomes:
            self.on_their_way.pop(0)

    @rule()
    def upkeep(self) -> None:
        self.node.upkeep()

    @rule(policy=st.sampled_from(CrashPolicy))
    def crash(self, policy: CrashPolicy) -> None:
        self.node.crash_and_start(policy)
        self._lead_for_long()
        self._send_all_again()

    @rule()
    def stop(self) -> None:
        self.node.stop_and_start()
        self._lead_for_long()
        self._send_all_again()

    @invariant()
    def one_copy_in_order_at_the_offset_told(self) -> None:
        found = self.node.values()
        ours = [value for value in found if value != b"other"]
        sent = [value for batch in self.all for value in batch.values]
        assert ours == sent
        for batch in self.all:
            if Outcome.COMMITTED in batch.outcomes:
                assert found.index(batch.values[0]) in batch.offsets

    def teardown(self) -> None:
        self.node.sync()
        for batch in self.all:
            assert Outcome.COMMITTED in batch.outcomes

    def _lead_for_long(self) -> None:
        """Let time pass: a new leader would wait for a first batch, and this producer has none."""
        self.node.clock.ms += TAKEOVER_MS_MAX

    def _send_all_again(self) -> None:
        for sent in self.on_their_way:
            # What was not committed may get another offset; what was committed may not.
            if Outcome.COMMITTED not in sent.outcomes:
                sent.offsets.clear()
                sent.outcomes.clear()
            self._to_broker(sent)

    def _to_broker(self, sent: _Sent) -> None:
        offset, outcomes = self.node.send(sent.batch)
        sent.offsets.add(offset)
        assert len(sent.offsets) == 1, "a retry gets the same offset"
        if sent.outcomes:
            outcomes += sent.outcomes
        sent.outcomes = outcomes


TestExactlyOnce = ExactlyOnce.TestCase
TestExactlyOnce.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
