"""A coordinator's desk for tests of the state of share groups: asks, applies at once, and logs."""

from kafkaesque.ages import Ages
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.decision import Decision, Now
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    Adopted,
    ShareCommand,
    ShareOffsets,
    ShareStarts,
    WriteState,
)
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.machines.queues.share_states import ShareStateLimits, ShareStates
from tests.machines.share_desk import GROUP, LIMITS, PLACE

WALL_MS = 1_700_000_000_000
NOW = Now(10_000, WALL_MS, Ages(now_ms=WALL_MS))


class Desk:
    """One machine, and all that it wrote."""

    def __init__(self, limits: ShareStateLimits | None = None) -> None:
        self.limits = limits or ShareStateLimits()
        self.machine = ShareStates(self.limits)
        self.log: list[MachineRecord] = []
        self.was_one_batch = False
        self._open: list[SharePartition] = []
        """States that were written or restored: their next write does not open the group."""

    def ask(self, command: ShareCommand) -> object:
        """Return the answer, or the refusal."""
        answers: list[object] = []
        try:
            decision = self.machine.decide(command, answers.append, NOW)
        except KafkaesqueError as refusal:
            return refusal
        self.carry_out(decision)
        (reply,) = decision.replies
        return reply.answer

    def carry_out(self, decision: Decision) -> None:
        self.was_one_batch = decision.is_one_batch
        self.log += decision.records
        for record in decision.records:
            self.machine.apply(record)

    def adopt(self, term: int, first: int, place: Place = PLACE) -> tuple[MachineRecord, ...]:
        answer = self.ask(Adopt(place=place, term=term, serial=1, since=0, first=first))
        assert isinstance(answer, Adopted), answer
        return answer.records

    def restored(self, term: int, first: int, group: str = GROUP) -> SharePartition:
        found = SharePartition.restored(PLACE, group, self.adopt(term, first), LIMITS)
        self._open.append(found)
        return found

    def write(self, state: SharePartition, term: int) -> object:
        opens = not any(one is state for one in self._open)
        self._open.append(state)
        return self.ask(
            WriteState(
                place=state.place,
                term=term,
                serial=1,
                generations={state.group: state.generation},
                records=tuple(state.changes()),
                opens=(state.group,) if opens else (),
            )
        )

    def starts(self, group: str = GROUP) -> dict[Place, int]:
        answer = self.ask(ShareOffsets(group=group))
        assert isinstance(answer, ShareStarts)
        return {place: start.offset for place, start in answer.starts.items()}

    def replayed(self) -> ShareStates:
        """Return a machine that has read the whole log."""
        again = ShareStates(self.limits)
        for record in self.log:
            again.apply(record)
        return again
