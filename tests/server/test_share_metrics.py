"""What a broker reports to Prometheus about share groups."""

from kafkaesque.broker.queues.partition_shares import PartitionShares
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.http.metrics import METRICS
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.server_config import LimitsConfig
from tests.server.share_members import GROUP, LOCK_MS, TOPIC, ShareHouse

READY, IN_FLIGHT, OLDEST = "ready_records", "in_flight_records", "oldest_lock_seconds"


def read(house: ShareHouse, name: str, series_max: int = 1_000) -> dict[tuple[str, ...], float]:
    limits = LimitsConfig(metrics_series_max=series_max)
    (metric,) = (one for one in METRICS if one.name == f"kafkaesque_share_{name}")
    samples = list(metric.read(Edge(house.broker, limits, house.clock, None, Turn())))
    assert len(dict(samples)) == len(samples), "Prometheus refuses a series that is there twice"
    return dict(samples)


def total(house: ShareHouse, name: str) -> float:
    return read(house, name)[()]


def by_group(house: ShareHouse, name: str, series_max: int = 1_000) -> dict[str, float]:
    found = read(house, f"group_{name}", series_max)
    return {group: value for (group,), value in found.items()}


def shares_of(house: ShareHouse, index: int = 0) -> PartitionShares:
    return house.broker.shares.of(house.place(index), house.broker.partition(TOPIC, index))


def settle(house: ShareHouse, first: int, last: int, kind: Ack, index: int = 0) -> None:
    acks = [AckBatch(first, last, (kind,))]
    shares_of(house, index).settle(GROUP, "me", acks, lambda _: None)
    house.after_event()


def house_of(*groups: str) -> ShareHouse:
    """Return a broker with groups that read both partitions from the start."""
    house = ShareHouse()
    answers: list[object] = []
    settings = {"share.auto.offset.reset": "earliest"}
    for group in groups:
        house.broker.set_group_settings(group, settings, answers.append)
    house.sync()
    assert answers == [None] * len(groups)
    house.open()
    for group in groups:
        for index in range(2):
            shares_of(house, index).share(group)
            house.after_event()
            assert shares_of(house, index).share(group) is not None
    return house


def test_what_a_group_does_is_counted() -> None:
    house = house_of()
    house.produce(TOPIC, *(b"x" for _ in range(20)))
    house.produce(TOPIC, b"y", partition=1)
    assert total(house, "partitions") == 2
    assert by_group(house, READY) == {GROUP: 21}
    assert shares_of(house).take(GROUP, "me", 10, 10_000).acquired
    settle(house, 0, 1, Ack.ACCEPT)
    settle(house, 3, 5, Ack.REJECT)
    settle(house, 6, 9, Ack.RELEASE)
    assert total(house, "accepted_total") == 2
    assert total(house, "rejected_total") == 3
    assert total(house, "in_flight_records") == 1
    assert total(house, "released_records") == 4
    assert shares_of(house).take(GROUP, "me", 4, 10_000).acquired
    assert total(house, "deliveries_total") == 14
    assert total(house, "redeliveries_total") == 4
    assert by_group(house, IN_FLIGHT) == {GROUP: 5}
    assert by_group(house, READY) == {GROUP: 11}
    house.pass_ms(LOCK_MS)
    assert total(house, "expired_total") == 5
    assert total(house, "given_up_total") == 0
    assert total(house, "writes_refused_total") == 0
    assert by_group(house, READY) == {GROUP: 16}


def test_records_given_up_are_counted() -> None:
    house = house_of()
    house.set(share_delivery_count_limit=2)
    house.produce(TOPIC, b"x")
    for _ in range(2):
        assert shares_of(house).take(GROUP, "me", 10, 10_000).acquired
        settle(house, 0, 0, Ack.RELEASE)
    assert total(house, "given_up_total") == 1
    assert by_group(house, READY) == {GROUP: 0}


def test_sessions_and_waiting_acknowledgements_are_shown() -> None:
    house = house_of()
    house.produce(TOPIC, b"x")
    house.broker.shares.sessions.at((GROUP, "me"), 0, 1)
    assert total(house, "sessions") == 1
    assert shares_of(house).take(GROUP, "me", 1, 10_000).acquired
    house.after_event()
    house.holds_syncs = True
    settle(house, 0, 0, Ack.ACCEPT)
    assert total(house, "acknowledgements_waiting") == 1
    house.holds_syncs = False
    house.tick()
    assert total(house, "acknowledgements_waiting") == 0


def test_the_age_of_a_group_is_that_of_its_oldest_lock_on_any_partition() -> None:
    house = house_of()
    house.produce(TOPIC, b"x")
    house.produce(TOPIC, b"y", partition=1)
    assert by_group(house, OLDEST) == {GROUP: 0}
    assert shares_of(house, 0).take(GROUP, "me", 1, 10_000).acquired
    house.pass_ms(2_000)
    assert shares_of(house, 1).take(GROUP, "me", 1, 10_000).acquired
    house.pass_ms(500)
    assert by_group(house, OLDEST) == {GROUP: 2.5}


def test_groups_with_less_lag_than_others_count_as_one() -> None:
    house = house_of("late", "slow", "other")
    house.produce(TOPIC, *(b"x" for _ in range(10)))
    for group, records in ((GROUP, 8), ("late", 1), ("slow", 5)):
        shares = shares_of(house)
        acks: list[object] = []
        taken = shares.take(group, "me", records, 10_000).acquired
        assert taken
        shares.settle(group, "me", [AckBatch(0, records - 1, (Ack.ACCEPT,))], acks.append)
        house.after_event()
        assert acks == [None]
    assert by_group(house, READY) == {GROUP: 2, "late": 9, "slow": 5, "other": 10}
    assert by_group(house, READY, 1) == {"late": 9, "other": 17}
    assert by_group(house, READY, 2) == {"late": 9, "slow": 5, "other": 12}
    assert by_group(house, OLDEST, 1) == {"late": 0, "other": 0}
    assert shares_of(house).take("slow", "me", 3, 10_000).acquired
    assert shares_of(house).take(GROUP, "me", 1, 10_000).acquired
    house.pass_ms(1_000)
    assert by_group(house, IN_FLIGHT, 1) == {"late": 0, "other": 4}
    assert by_group(house, OLDEST, 1) == {"late": 0, "other": 1}


def test_a_broker_without_share_groups_reports_zeros_and_no_groups() -> None:
    house = ShareHouse()
    assert total(house, "partitions") == 0
    assert total(house, "in_flight_records") == 0
    assert total(house, "acknowledgements_waiting") == 0
    assert by_group(house, READY) == {}
