"""How long share groups wait for the coordinator of their state, and who notices."""

import pytest

from kafkaesque.broker.client_state_limits import taken
from kafkaesque.broker.problems import SHARES_WAIT_MS_MAX, ProblemKind, problems
from kafkaesque.broker.queues.share_calls import ShareDesk, To
from kafkaesque.broker.queues.share_sessions import PLACES_MAX, SESSIONS_MAX
from kafkaesque.errors import NotCoordinator
from kafkaesque.machines.queues.queue_errors import FencedGeneration, ShareStateFull
from kafkaesque.machines.queues.share_states import ShareStateLimits
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from tests.broker.share_houses import House
from tests.server.share_members import GROUP, TOPIC, ShareHouse

FULL = ShareStateFull("full")


def test_the_oldest_acknowledgement_counts_however_many_follow() -> None:
    house = House()
    house.write(10)
    house.take()
    assert (house.shares.acks_waiting, house.shares.waits_ms) == (0, 0)
    house.desk.is_open = False
    house.settle(0, 0)
    house.clock.ms += 300
    house.settle(1, 1)
    assert (house.shares.acks_waiting, house.shares.waits_ms) == (2, 300)
    house.desk.answer()
    assert (house.shares.acks_waiting, house.shares.waits_ms) == (1, 0)
    house.clock.ms += 50
    assert house.shares.waits_ms == 50
    house.desk.answer()
    assert (house.shares.acks_waiting, house.shares.waits_ms) == (0, 0)


def test_a_state_that_is_not_loaded_counts_as_well() -> None:
    house = House()
    house.desk.is_open = False
    house.shares = house.new_shares()
    house.clock.ms += 700
    house.desk.refuse(NotCoordinator("nobody"))
    assert house.shares.waits_ms == 700
    assert isinstance(house.shares.trouble, NotCoordinator)
    house.pass_ms(300)
    house.desk.answer()
    assert house.shares.waits_ms == 0
    house.desk.is_open = True
    house.write(1)
    house.take()
    house.desk.is_open = False
    house.shares.look_again(GROUP)
    house.clock.ms += 40
    assert house.shares.waits_ms == 40, "it loads the state once more"
    house.shares.close()
    assert house.shares.waits_ms == 0


def test_refused_writes_are_counted_and_others_are_not() -> None:
    house = House()
    house.write(10)
    house.take()
    house.desk.is_open = False
    house.settle(0, 0)
    house.desk.refuse(NotCoordinator("nobody"))
    assert house.tally.writes_refused == 0
    house.pass_ms(1_000)
    house.desk.refuse(FULL)
    assert (house.tally.writes_refused, house.shares.trouble) == (1, FULL)
    house.pass_ms(1_000)
    house.desk.refuse(FencedGeneration("set"))
    assert house.tally.writes_refused == 2
    house.desk.answer()  # it adopts
    house.desk.lose(is_done=False)
    assert house.tally.writes_refused == 2


def settle(house: ShareHouse, offset: int) -> None:
    shares = house.broker.shares.of(house.place(), house.broker.partition(TOPIC, 0))
    acks = [AckBatch(offset, offset, (Ack.ACCEPT,))]
    shares.settle(GROUP, "me", acks, lambda _: None)


def busy_house() -> ShareHouse:
    """Return a broker one of whose members holds three records."""
    house = ShareHouse()
    house.produce(TOPIC, b"a", b"b", b"c")
    house.open()
    shares = house.broker.shares.of(house.place(), house.broker.partition(TOPIC, 0))
    assert shares.take(GROUP, "me", 3, 1_000).acquired
    house.tick()
    return house


def test_acknowledgements_that_wait_for_long_are_a_problem() -> None:
    house = busy_house()
    house.holds_syncs = True
    settle(house, 0)
    house.pass_ms(SHARES_WAIT_MS_MAX)
    assert problems(house.broker) == []
    house.pass_ms(1)
    (found,) = problems(house.broker)
    assert found.kind is ProblemKind.SHARES_STUCK
    assert found.text == (
        "share groups of orders-0 wait for the coordinator of their state: start the brokers of "
        "__share_group_state that are down"
    )
    assert found.about == {house.broker.partition(TOPIC, 0).replica.group}
    assert not found.kind.is_final
    assert not found.kind.concerns_all
    house.holds_syncs = False
    house.tick()
    assert problems(house.broker) == []


def test_a_full_state_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    house = busy_house()

    def refuse(desk: ShareDesk, place: object, command: object, to: To) -> None:
        to(FULL)

    with monkeypatch.context() as patched:
        patched.setattr(ShareDesk, "ask", refuse)
        settle(house, 0)
        house.pass_ms(SHARES_WAIT_MS_MAX + 1)
        (found,) = problems(house.broker)
        assert found.text == (
            "the state of share groups is full, so acknowledgements of orders-0 wait: delete share "
            "groups that nobody needs"
        )
    house.pass_ms(1_000)
    assert problems(house.broker) == []


def test_limits_of_share_groups_are_reported_as_far_as_they_are_used() -> None:
    house = busy_house()
    sessions = house.broker.shares.sessions
    session = sessions.at((GROUP, "me"), 0, 1)
    sessions.change(session, [house.place(0), house.place(1)], [])
    found = taken(house.broker)
    assert found["share sessions"] == 1 / SESSIONS_MAX
    assert found["share session partitions"] == 2 / PLACES_MAX
    assert found["group settings"] == 1 / 10_000
    machines = [one.machine for one in house.broker.shares.desk.coordinators.all]
    fullest = max(one.state_bytes for one in machines if one is not None)
    assert fullest > 0
    assert found["share state"] == fullest / ShareStateLimits().bytes_max
