"""What administrators do to a share group shows at its partition's leader when a member comes."""

from collections.abc import Callable

import pytest

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.queues.partition_shares import RETRY_MS
from kafkaesque.errors import NotCoordinator, OutcomeUnknown
from kafkaesque.machines.queues.share_commands import Adopt, DeleteShareGroup, SetStart, WriteState
from kafkaesque.machines.queues.share_records import StartKey, StartSaved, to_record
from tests.broker.share_houses import GROUP, PLACE, YOU, House


def a_house_of_two() -> House:
    house = House()
    house.texts["others"] = {"share.auto.offset.reset": "earliest"}
    house.write(6)
    assert house.take() == [(0, 5, 1)]
    assert house.take(3, group="others", member=YOU) == [(0, 2, 1)]
    return house


def test_a_group_is_compared_with_what_is_written_when_a_member_comes() -> None:
    house = a_house_of_two()
    house.desk.decide(SetStart(place=PLACE, group=GROUP, offset=4))
    house.shares.look_again(GROUP)
    assert house.take(member="third") == [(4, 5, 1)], "though nothing was written in between"
    assert house.settle(0, 2, group="others", member=YOU) == [None]
    house.desk.decide(DeleteShareGroup(group=GROUP))
    house.shares.look_again(GROUP)
    assert house.take(member="fourth") == [(0, 5, 1)]
    house.shares.look_again(GROUP)
    assert house.take(member="fifth") == [], "nothing has changed: it is still held"


def test_a_group_that_was_deleted_and_set_again_is_not_the_one_that_is_known() -> None:
    house = a_house_of_two()
    house.desk.decide(DeleteShareGroup(group=GROUP))
    house.clock.ms += 1000
    house.desk.decide(
        WriteState(
            place=PLACE,
            term=house.shares.term,
            serial=1,
            generations={GROUP: 0},
            records=(to_record(StartKey(*PLACE, GROUP), StartSaved(0, 3, house.clock.ms)),),
            opens=(GROUP,),
        )
    )
    house.shares.look_again(GROUP)
    assert house.take(member="third") == [(3, 5, 1)]


def test_nothing_is_handed_out_before_the_state_was_looked_at_again() -> None:
    house = a_house_of_two()
    house.desk.is_open = False
    outcomes = house.settle(0, 1)
    assert house.desk.kinds() == [WriteState]
    house.shares.look_again(GROUP)
    house.shares.look_again("nobody")
    assert house.take(group="others", member="third") == []
    house.desk.answer()
    assert outcomes == [None]
    assert house.desk.kinds() == [Adopt], "once, and after what was on its way"
    assert house.take(group="others", member="third") == []
    house.desk.refuse(NotCoordinator("away"))
    assert house.take(group="others", member="third") == []
    house.wait()
    house.pass_ms(RETRY_MS)
    house.desk.answer()
    assert house.woken == 1
    assert house.take(group="others", member="third") == [(3, 5, 1)]


def test_a_group_that_is_not_known_needs_no_look() -> None:
    house = a_house_of_two()
    house.desk.is_open = False
    house.shares.look_again("nobody")
    assert house.desk.questions == []


@pytest.mark.parametrize("ends", [Partition.close, Partition.leave])
def test_a_partition_that_is_gone_has_no_share_groups(ends: Callable[[Partition], None]) -> None:
    house = a_house_of_two()
    house.desk.is_open = False
    (waiting,) = [house.settle(0, 0)]
    ends(house.partition)
    assert not house.shares.is_current
    house.shares.tick()
    assert isinstance(waiting[0], OutcomeUnknown)
    assert house.shares.groups() == ()
