"""Random sequences of journal records of several groups, drawn by Hypothesis."""

from hypothesis import strategies as st

from kafkaesque.entry import TermOpened, Voters
from kafkaesque.log.journal_records import (
    GroupForgotten,
    GroupState,
    HolesAllowed,
    JournalRecord,
    LogStarted,
    LossAllowed,
    MarksCut,
    RecoverySet,
    StateSaved,
    SyncedTo,
    mark_record,
    start_of,
    start_record,
)
from kafkaesque.types import GroupId
from tests.log.stores import THEM, US, a_start

STEPS = ["save", "open", "voters", "cut", "synced", "recovery", "trim", "install"]
STEPS += ["holes", "loss", "forget"]


class _Writer:
    """Draws records that are consistent with what its groups wrote before."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.groups: dict[GroupId, GroupState] = {}
        self.ends: dict[GroupId, int] = {}

    def record(self, group: GroupId) -> JournalRecord:
        record = self._begin(group) if group not in self.groups else self._next(group)
        if isinstance(record, GroupForgotten):
            del self.groups[group]
            return record
        if isinstance(record, LogStarted) and group not in self.groups:
            self.groups[group] = GroupState(start_of(record))
        self.groups[group].apply(record)
        return record

    def _begin(self, group: GroupId) -> JournalRecord:
        start = a_start(self.draw(st.integers(0, 9)), self.draw(st.integers(0, 3)))
        self.ends[group] = start.index
        return start_record(group, start, is_reset=False)

    def _next(self, group: GroupId) -> JournalRecord:
        state, number = self.groups[group], self.draw(st.integers(0, 5))
        match self.draw(st.sampled_from(STEPS)):
            case "save":
                vote = self.draw(st.sampled_from([None, 1, 2, 1 << 40]))
                return StateSaved(group=group, term=state.hard_state.term + number, vote=vote)
            case "open":
                return self._mark(group, number, TermOpened())
            case "voters":
                return self._mark(group, number, self.draw(st.sampled_from([US, THEM])))
            case "cut":
                index = self.draw(st.integers(state.marks.start.index, self.ends[group]))
                self.ends[group] = index
                return MarksCut(group=group, index=index)
            case "synced":
                return SyncedTo(
                    group=group, segment_base=number, position=9 * number, end_offset=3 * number
                )
            case "recovery":
                return RecoverySet(group=group, is_recovering=number > 2)
            case "trim":
                end_offset = self.ends[group] - state.marks.total
                offset = self.draw(st.integers(state.marks.start.offset, end_offset))
                start = state.marks.start_at(offset, visible_offset=offset + number)
                return start_record(group, start, is_reset=False)
            case "install":
                term = state.marks.term_at(self.ends[group])
                start = a_start(100 * number, number, term + number, THEM)
                self.ends[group] = start.index
                return start_record(group, start, is_reset=True)
            case "holes":
                return HolesAllowed(group=group)
            case "loss":
                return LossAllowed(group=group, is_allowed=number > 1)
            case _:
                return GroupForgotten(group=group)

    def _mark(self, group: GroupId, records: int, payload: TermOpened | Voters) -> JournalRecord:
        index = self.ends[group] + records
        term = self.groups[group].marks.term_at(index) + isinstance(payload, TermOpened)
        self.ends[group] = index + 1
        return mark_record(group, index, term, payload)


@st.composite
def histories(draw: st.DrawFn, groups: tuple[GroupId, ...] = ("a", "b")) -> list[JournalRecord]:
    """Records of some groups, in an order in which they could have been written."""
    writer = _Writer(draw)
    names = draw(st.lists(st.sampled_from(groups), max_size=25))
    return [writer.record(name) for name in names]
