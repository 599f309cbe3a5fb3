"""The doctor's findings: each one appears in its case only, with the command that fixes it."""

from dataclasses import replace

import pytest

from kafkaesque.client.address import Address
from kafkaesque.client.brokers import BrokerInfo, FolderInfo, MemberInfo, MoveInfo, QuorumInfo
from kafkaesque.client.features import FeatureInfo
from kafkaesque.client.findings import Finding, Kind, drain_obstacles, findings
from kafkaesque.client.overview import Overview
from kafkaesque.client.topics import PartitionInfo, TopicInfo


def a_broker(node: int, *, is_there: bool = True, is_draining: bool = False) -> BrokerInfo:
    return BrokerInfo(
        node=node,
        address=Address(host="localhost", port=9000 + node),
        rack="",
        is_there=is_there,
        is_draining=is_draining,
    )


def a_partition(
    index: int,
    leader: int,
    replicas: tuple[int, ...] = (1, 2, 3),
    in_sync: tuple[int, ...] | None = None,
) -> PartitionInfo:
    found = replicas if in_sync is None else in_sync
    return PartitionInfo(index=index, leader=leader, replicas=replicas, in_sync=found)


def a_topic(*partitions: PartitionInfo, name: str = "orders") -> TopicInfo:
    return TopicInfo(name=name, topic_id=b"t" * 16, is_internal=False, partitions=partitions)


def members(*nodes: int) -> tuple[MemberInfo, ...]:
    return tuple(MemberInfo(node=node, lag=0) for node in nodes)


QUORUM = QuorumInfo(leader=1, term=1, high_watermark=5, voters=members(1, 2, 3), learners=())
BROKERS = tuple(map(a_broker, (1, 2, 3)))
HEALTHY = Overview(
    brokers=BROKERS,
    quorum=QUORUM,
    topics=(a_topic(a_partition(0, 1), a_partition(1, 2), a_partition(2, 3)),),
    folders={1: FolderInfo(total_bytes=100, free_bytes=50, sizes={})},
    min_in_sync={"orders": 2},
)
DOWN = (*BROKERS[:2], a_broker(3, is_there=False))
DRAINING = (*BROKERS, a_broker(4, is_draining=True))


def with_partition(**changes: object) -> Overview:
    first, *rest = HEALTHY.topics[0].partitions
    changed = replace(first, **changes)  # type: ignore[arg-type]  # one of its own fields
    return replace(HEALTHY, topics=(a_topic(changed, *rest),))


def only(seen: Overview, before: Overview | None = None) -> Finding:
    (found,) = findings(seen, before)
    return found


def test_a_healthy_cluster_and_a_single_broker_have_no_findings() -> None:
    assert findings(HEALTHY) == []
    alone = Overview(
        brokers=BROKERS[:1],
        quorum=replace(QUORUM, voters=members(1)),
        topics=(a_topic(a_partition(0, 1, (1,))),),
    )
    assert findings(alone) == []


def test_a_catalog_without_a_leader_comes_first() -> None:
    found = findings(replace(HEALTHY, quorum=None, brokers=DOWN))
    assert found[0].kind is Kind.CATALOG
    assert "cluster recover --data DIR --lost 3" in found[0].command


def test_no_drain_is_suggested_while_no_majority_could_agree_on_it() -> None:
    found = findings(replace(HEALTHY, quorum=None, brokers=LOST))
    assert Kind.BROKER_DOWN in {one.kind for one in found}
    assert not [one for one in found if "cluster drain" in one.command]


def test_while_all_brokers_are_up_no_lossy_command_is_suggested() -> None:
    (found,) = findings(replace(HEALTHY, quorum=None))
    assert found.kind is Kind.CATALOG
    assert "recover" not in found.command
    assert "kafkaesque doctor" in found.command


def test_a_clock_in_doubt_is_named_with_its_broker() -> None:
    found = only(replace(HEALTHY, clock_doubts={1: "", 2: "the wall clock has jumped"}))
    assert found.kind is Kind.CLOCK
    assert "broker 2: the wall clock has jumped" in found.text


def test_a_broker_that_is_down_is_named_with_its_address() -> None:
    led_by_others = (a_topic(a_partition(0, 1), a_partition(1, 2), a_partition(2, 1)),)
    found = only(replace(HEALTHY, brokers=DOWN, topics=led_by_others))
    assert found.kind is Kind.BROKER_DOWN
    assert found.text == "broker 3 at localhost:9003 is down"
    assert "kafkaesque cluster drain 3 --yes" in found.command


def test_a_partition_whose_leader_is_down_has_none() -> None:
    """A broker that is cut off from the rest names the former leaders."""
    kinds = {found.kind for found in findings(replace(HEALTHY, brokers=DOWN), None)}
    assert kinds == {Kind.BROKER_DOWN, Kind.LEADERLESS}


LOST = (BROKERS[0], a_broker(2, is_there=False), a_broker(3, is_there=False))


def recovered(*brokers: BrokerInfo) -> Overview:
    """Return a cluster in which broker 1 carried on alone; only broker 3 had a copy of `lonely`."""
    orders = a_topic(a_partition(0, 1, in_sync=(1,)))
    lonely = a_topic(a_partition(0, -1, (3,), ()), name="lonely")
    quorum = replace(QUORUM, voters=members(1), learners=members(2, 3))
    return Overview(brokers=brokers, quorum=quorum, topics=(orders, lonely))


def test_a_broker_that_others_carried_on_without_is_not_to_be_started() -> None:
    found = findings(recovered(*LOST))
    assert not [
        one for one in found if "start broker" in one.command or "start it ag" in one.command
    ]
    down = [one for one in found if one.kind is Kind.BROKER_DOWN]
    assert [one.text for one in down] == [
        "broker 2 at localhost:9002 is lost: others went on without it",
        "broker 3 at localhost:9003 is lost: others went on without it",
    ]
    assert "kafkaesque cluster drain 2 --yes; never start it" in down[0].command
    (leaderless,) = [one for one in found if one.kind is Kind.LEADERLESS]
    assert "kafkaesque topic delete lonely --yes" in leaderless.command


def test_a_drained_broker_is_not_to_be_started() -> None:
    drained = [replace(one, is_draining=True) for one in LOST[1:]]
    for seen in (
        recovered(LOST[0], *drained),
        replace(HEALTHY, brokers=(*BROKERS[:2], drained[1])),
    ):
        assert not [one for one in findings(seen) if "start broker" in one.command]


def test_groups_that_cannot_elect_a_leader_are_recovered_by_giving_up_brokers() -> None:
    drained = [replace(one, is_draining=True) for one in LOST[1:]]
    seen = replace(recovered(LOST[0], *drained), topics=(a_topic(a_partition(0, -1, in_sync=())),))
    (found,) = [one for one in findings(seen) if one.kind is Kind.LEADERLESS]
    assert "cluster recover --data DIR --lost 2 --lost 3" in found.command


def test_a_drain_that_cannot_end_names_the_topics_in_the_way() -> None:
    drained = [replace(one, is_draining=True) for one in LOST[1:]]
    texts = [one.text for one in drain_obstacles(recovered(LOST[0], *drained), 3)]
    commands = [one.command for one in drain_obstacles(recovered(LOST[0], *drained), 3)]
    assert "partitions with 3 replicas, and only 1 other broker can take them" in texts[0]
    assert "kafkaesque topic alter orders --replicas 1 --yes" in commands[0]
    assert texts[1] == "broker 3 cannot be drained: no leader for lonely-0"
    assert list(drain_obstacles(replace(HEALTHY, brokers=DRAINING), 4)) == []


@pytest.mark.parametrize(
    ("leader", "in_sync", "kind"),
    [
        (-1, (), Kind.LEADERLESS),
        (1, (1,), Kind.MIN_IN_SYNC),
        (1, (1, 2), Kind.UNDER_REPLICATED),
    ],
)
def test_a_partition_is_listed_once_under_its_worst_problem(
    leader: int, in_sync: tuple[int, ...], kind: Kind
) -> None:
    found = only(with_partition(leader=leader, in_sync=in_sync))
    assert found.kind is kind
    assert "1 partition " in found.text
    assert "orders-0" in found.text


def test_a_partition_without_a_leader_but_with_damaged_copies_points_to_the_damage() -> None:
    lone = a_topic(a_partition(0, -1, (1,), ()), name="lone")
    folder = FolderInfo(total_bytes=100, free_bytes=50, sizes={}, damaged=(("lone", 0),))
    told = {"damaged": "the copy of lone-0 cannot be used: it is damaged"}
    seen = replace(
        HEALTHY, brokers=BROKERS[:1], topics=(lone,), folders={1: folder}, problems={1: told}
    )
    leaderless, damaged = findings(seen)
    assert leaderless.text == "1 partition without a leader: lone-0"
    assert leaderless.command == (
        "damage on broker 1 keeps it from having one: see the finding about that damage"
    )
    assert "kafkaesque log repair" in damaged.command


def test_only_some_of_many_partitions_are_named() -> None:
    many = a_topic(*(a_partition(index, -1) for index in range(8)))
    found = only(replace(HEALTHY, topics=(many,)))
    assert found.text.endswith("orders-4 and 3 more")


def test_a_topic_below_the_default_replication_has_its_command() -> None:
    few = a_topic(*(a_partition(n, n + 1, (n + 1,)) for n in range(3)), name="small")
    found = only(replace(HEALTHY, topics=(few,)))
    assert found.kind is Kind.REPLICATION
    assert found.command == "kafkaesque topic alter small --replicas 3 --yes"


def test_a_nearly_full_disk_names_the_largest_topic() -> None:
    sizes = {("orders", 0): 5, ("pay", 0): 4, ("pay", 1): 3}
    full = FolderInfo(total_bytes=100, free_bytes=9, sizes=sizes)
    found = only(replace(HEALTHY, folders={2: full}))
    assert found.kind is Kind.DISK
    assert "broker 2 has 9 % left" in found.text
    assert "topic alter pay" in found.command


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"old-copy": "nobody else holds a-0"}, Kind.OLD_COPY),
        ({"tail-lost": "the disk lost data of orders-0"}, Kind.DAMAGED),
        ({"crowded": "at least 90% of the limit is used by producers"}, Kind.CROWDED),
        ({"shares-stuck": "the state of share groups is full"}, Kind.SHARES_STUCK),
        ({"damaged": "the copy of orders-0 cannot be used"}, Kind.DAMAGED),
        ({"disk-full": "the disk of /data has no room"}, Kind.DISK),
        ({"leaderless": "no leader for orders-0"}, Kind.LEADERLESS),
    ],
)
def test_a_brokers_own_problems_are_reported(told: dict[str, str], kind: Kind) -> None:
    found = only(replace(HEALTHY, problems={2: told}))
    assert found.kind is kind
    assert "broker 2" in found.text


def test_two_brokers_are_one_too_few() -> None:
    seen = Overview(brokers=BROKERS[:2], quorum=replace(QUORUM, voters=members(1)))
    found = only(seen)
    assert found.kind is Kind.FEW_BROKERS
    assert "serve --join localhost:9001" in found.command


def test_uneven_leaders_are_reported() -> None:
    same = a_topic(*(a_partition(index, 1) for index in range(6)))
    found = only(replace(HEALTHY, topics=(same,)))
    assert found.kind is Kind.UNEVEN
    assert found.command == "kafkaesque cluster rebalance --yes"


def test_a_drained_broker_can_be_removed_when_it_neither_hosts_nor_votes() -> None:
    found = only(replace(HEALTHY, brokers=DRAINING))
    assert found.kind is Kind.EMPTY
    assert found.command == "kafkaesque cluster remove 4 --yes"
    voting = replace(QUORUM, voters=members(1, 2, 4))
    assert findings(replace(HEALTHY, brokers=DRAINING, quorum=voting)) == []


def test_a_broker_whose_partitions_have_no_other_place_cannot_be_drained() -> None:
    draining = (*BROKERS[:2], a_broker(3, is_draining=True))
    found = only(replace(HEALTHY, brokers=draining))
    assert found.kind is Kind.STUCK
    assert "broker 3 cannot be drained" in found.text


def test_a_move_is_stuck_when_its_broker_is_down_or_nothing_arrives() -> None:
    move = MoveInfo(topic="orders", partition=0, nodes=(1, 2, 4), adding=(4,), removing=(3,))

    def moving(*, is_there: bool, size: int) -> Overview:
        folders = {
            1: FolderInfo(total_bytes=-1, free_bytes=-1, sizes={("orders", 0): 100}),
            4: FolderInfo(total_bytes=-1, free_bytes=-1, sizes={("orders", 0): size}),
        }
        brokers = (*BROKERS, a_broker(4, is_there=is_there))
        return replace(HEALTHY, brokers=brokers, moves=(move,), folders=folders)

    away = [one for one in findings(moving(is_there=False, size=0)) if one.kind is Kind.STUCK]
    assert "waits for broker 4" in away[0].text
    assert "cluster move orders 0 --cancel --yes" in away[0].command
    before = moving(is_there=True, size=10)
    assert before.progress(move) == 10
    still = findings(moving(is_there=True, size=10), before)
    assert [one.kind for one in still if one.kind is Kind.STUCK] == [Kind.STUCK]
    assert not [
        one for one in findings(moving(is_there=True, size=20), before) if one.kind is Kind.STUCK
    ]


def test_levels_that_could_rise_are_reported_when_all_brokers_are_up() -> None:
    level = FeatureInfo(name="catalog.version", finalized=1, possible=2)
    seen = replace(HEALTHY, features=(level,))
    (found,) = findings(seen)
    assert (found.kind, found.command) == (Kind.LEVELS, "kafkaesque cluster upgrade --yes")
    assert Kind.LEVELS not in {one.kind for one in findings(replace(seen, brokers=DOWN))}
    assert findings(replace(HEALTHY, features=(replace(level, finalized=2),))) == []


def test_a_damaged_copy_is_reported_with_the_possible_actions() -> None:
    folder = FolderInfo(total_bytes=100, free_bytes=50, sizes={}, damaged=(("orders", 1),))
    (found,) = findings(replace(HEALTHY, folders={2: folder}))
    assert found.kind is Kind.DAMAGED
    assert found.text == "broker 2 has 1 damaged partition: orders-1"
    assert "is repaired automatically" in found.command


def test_damage_that_the_broker_reports_itself_is_listed_once() -> None:
    folder = FolderInfo(total_bytes=100, free_bytes=50, sizes={}, damaged=(("orders", 1),))
    told = {"damaged": "the copy of orders-1 is damaged: lost records are restored"}
    found = only(replace(HEALTHY, folders={2: folder}, problems={2: told}))
    assert found.text == "broker 2: the copy of orders-1 is damaged: lost records are restored"
    waiting = {"unfilled": "the damaged copy of orders-1 is not emptied yet"}
    found = only(replace(HEALTHY, folders={2: folder}, problems={2: waiting}))
    assert "is not emptied yet" in found.text


def test_an_only_copy_cannot_be_refilled() -> None:
    topic = a_topic(a_partition(0, 1, replicas=(1,)))
    folder = FolderInfo(total_bytes=100, free_bytes=50, sizes={}, damaged=(("orders", 0),))
    seen = replace(HEALTHY, topics=(topic,), min_in_sync={}, folders={1: folder})
    found = next(one for one in findings(seen) if one.kind is Kind.DAMAGED)
    assert found.command.startswith("there is no other copy of orders-0: restore the folder from")


def test_several_brokers_are_named_in_the_plural() -> None:
    away = (BROKERS[0], *(replace(one, is_there=False) for one in BROKERS[1:]))
    found = findings(replace(HEALTHY, quorum=None, brokers=away))
    assert "start brokers 2 and 3 again; only if they are gone for good" in found[0].command


@pytest.mark.parametrize(
    ("others", "text"),
    [(0, "no other brokers can"), (1, "only 1 other broker can"), (2, "only 2 other brokers can")],
)
def test_a_drain_that_cannot_end_says_how_many_others_there_are(others: int, text: str) -> None:
    seen = replace(HEALTHY, brokers=BROKERS[: 1 + others])
    found = next(iter(drain_obstacles(seen, 1)))
    assert f"partitions with 3 replicas, and {text} take them" in found.text
