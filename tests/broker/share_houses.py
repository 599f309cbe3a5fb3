"""A partition with share groups, and a desk where questions to the state's coordinator wait."""

from collections.abc import Callable
from typing import Any

from kafkaesque.broker.queues.partition_shares import PartitionShares, Taken
from kafkaesque.broker.queues.share_settings import ShareSettingsInForce
from kafkaesque.entry import Voters
from kafkaesque.errors import KafkaesqueError, OutcomeUnknown
from kafkaesque.machines.decision import Now
from kafkaesque.machines.queues.share_commands import (
    ShareCommand,
)
from kafkaesque.machines.queues.share_records import StartSaved, from_record
from kafkaesque.machines.queues.share_states import ShareStateLimits, ShareStates
from kafkaesque.machines.queues.share_tally import ShareTally
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from kafkaesque.record.view import split_batches
from tests.broker.nodes import ALONE
from tests.broker.partitions import PartitionNode, build

PLACE = (bytes(range(16)), 0)
GROUP, ME, YOU = "workers", "me", "you"
LARGE = 1 << 20
LOCK_MS = 30_000

Texts = dict[str, dict[str, str]]
Outcome = KafkaesqueError | None


class Desk:
    """Where questions wait; answered by a real machine, or not at all."""

    def __init__(self, limits: ShareStateLimits | None = None) -> None:
        self.states = ShareStates(limits or ShareStateLimits())
        self.questions: list[tuple[ShareCommand, Callable[[Any], None]]] = []
        self.is_open = True
        self._serial = 0

    def next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def ask(self, place: object, command: ShareCommand, to: Callable[[Any], None]) -> None:
        self.questions.append((command, to))
        if self.is_open:
            self.answer()

    def decide(self, command: ShareCommand) -> Any:
        """Decide and keep; returns the answer."""
        answers: list[Any] = []
        try:
            decision = self.states.decide(command, answers.append, Now(0, 0, None))
        except KafkaesqueError as error:
            return error
        for record in decision.records:
            self.states.apply(record)
        for to, answer in decision.replies:
            to(answer)
        return answers[0]

    def answer(self) -> None:
        command, to = self.questions.pop(0)
        to(self.decide(command))

    def lose(self, *, is_done: bool) -> None:
        """Answer that the outcome is unknown, whether it was done or not."""
        command, to = self.questions.pop(0)
        if is_done:
            self.decide(command)
        to(OutcomeUnknown("lost"))

    def refuse(self, error: KafkaesqueError) -> None:
        self.questions.pop(0)[1](error)

    def kinds(self) -> list[type]:
        return [type(command) for command, _ in self.questions]

    def start(self, group: str = GROUP) -> int | None:
        """Where a group starts, as written."""
        for record in self.states.records():
            key, value = from_record(record)
            if isinstance(value, StartSaved) and getattr(key, "group", None) == group:
                return value.start
        return None


class House(PartitionNode):
    """A partition and its share groups."""

    def __init__(self, limits: ShareStateLimits | None = None, voters: Voters = ALONE) -> None:
        super().__init__(voters)
        self.desk = Desk(limits)
        self.texts: Texts = {GROUP: {"share.auto.offset.reset": "earliest"}}
        self.tally = ShareTally()
        self.woken = 0
        self.outcomes: list[Outcome] = []
        if voters == ALONE:
            self.shares = self.new_shares()

    def new_shares(self) -> PartitionShares:
        settings = ShareSettingsInForce(lambda: self.texts)
        desk: Any = self.desk
        return PartitionShares(PLACE, self.partition, desk, self.clock, settings, self.tally)

    def set(self, group: str = GROUP, **texts: object) -> None:
        named = {name.replace("_", "."): str(text) for name, text in texts.items()}
        self.texts[group] = {"share.auto.offset.reset": "earliest", **named}
        self.shares.tick()

    def write(self, count: int, *, batches: int = 1) -> None:
        for _ in range(batches):
            self.send(build(*(b"v" for _ in range(count))))

    def take(
        self, count: int = 100, *, member: str = ME, group: str = GROUP, bytes_max: int = LARGE
    ) -> list[tuple[int, int, int]]:
        return acquired(self.shares.take(group, member, count, bytes_max))

    def settle(
        self, first: int, last: int, kind: Ack = Ack.ACCEPT, *, member: str = ME, group: str = GROUP
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        self.shares.settle(group, member, [AckBatch(first, last, (kind,))], outcomes.append)
        return outcomes

    def wait(self) -> None:
        """Ask to be woken once."""
        self.woken = 0

        def wake() -> None:
            self.woken += 1

        self.shares.when_more(wake)

    def pass_ms(self, ms: int) -> None:
        self.clock.ms += ms
        self.shares.tick()


def acquired(taken: Taken) -> list[tuple[int, int, int]]:
    if taken.acquired:
        # Clients find every acquired offset in what they get.
        views = list(split_batches(taken.data))
        for one in taken.acquired:
            assert any(view.base_offset <= one.first <= view.last_offset for view in views)
            assert any(view.base_offset <= one.last <= view.last_offset for view in views)
    else:
        assert not taken.data
    return [(one.first, one.last, one.count) for one in taken.acquired]
