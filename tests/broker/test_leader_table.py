"""Who leads what: leaders announce it, the higher term wins, restarted brokers learn it again."""

from kafkaesque.broker.replication.leader_table import (
    FACTS_MAX,
    NOBODY,
    Leader,
    Leaders,
    LeadersTold,
)


def exchange(*brokers: Leaders, rounds: int = 4) -> int:
    """Let brokers, numbered from 1, exchange messages until there are none; count the messages."""
    count = 0
    nodes = range(1, len(brokers) + 1)
    for _ in range(rounds):
        told = [
            word
            for node, broker in zip(nodes, brokers, strict=True)
            for word in broker.tick([other for other in nodes if other != node])
        ]
        count += len(told)
        for word in told:
            brokers[word.target - 1].receive(word)
    return count


def three() -> tuple[Leaders, Leaders, Leaders]:
    return Leaders(1, 11), Leaders(2, 22), Leaders(3, 33)


def test_every_broker_learns_who_leads() -> None:
    one, two, three_ = three()
    one.lead("orders", 4)
    exchange(one, two, three_)
    assert [b.of("orders") for b in (one, two, three_)] == [Leader(4, 1)] * 3
    assert two.of("others") == NOBODY


def test_no_message_is_sent_when_nothing_changes() -> None:
    brokers = three()
    brokers[0].lead("orders", 4)
    exchange(*brokers)
    assert exchange(*brokers) == 0
    brokers[1].lead("others", 1)
    assert 0 < exchange(*brokers) < 12


def test_a_message_with_an_older_term_is_ignored() -> None:
    one, two, three_ = three()
    one.lead("orders", 4)
    (late, _) = one.tick([2, 3])
    two.lead("orders", 5)
    two.receive(late)
    assert two.of("orders") == Leader(5, 2)
    exchange(one, two, three_)
    assert one.of("orders") == three_.of("orders") == Leader(5, 2)


def test_a_leader_that_steps_down_announces_it() -> None:
    brokers = three()
    brokers[0].lead("orders", 4)
    exchange(*brokers)
    brokers[0].cease("orders")
    exchange(*brokers)
    assert brokers[2].of("orders") == Leader(4, None)


def test_stepping_down_does_not_unseat_a_newer_leader() -> None:
    brokers = three()
    brokers[0].lead("orders", 4)
    exchange(*brokers)
    brokers[1].lead("orders", 5)
    brokers[0].cease("orders")
    exchange(*brokers)
    assert brokers[2].of("orders") == Leader(5, 2)


def test_a_restarted_broker_leads_nothing_and_learns_everything_again() -> None:
    one, two, three_ = three()
    one.lead("orders", 4)
    two.lead("others", 2)
    exchange(one, two, three_)
    again = Leaders(1, 12)
    exchange(again, two, three_)
    assert again.of("others") == Leader(2, 2)
    assert two.of("orders") == three_.of("orders") == Leader(4, None)


def test_a_late_message_of_an_earlier_session_is_corrected() -> None:
    one, two, three_ = three()
    one.lead("orders", 4)
    (late, _) = one.tick([2, 3])
    again = Leaders(1, 12)
    again.lead("others", 1)
    exchange(again, two, three_)
    two.receive(late)
    exchange(again, two, three_)
    assert two.of("others") == Leader(1, 1)
    assert two.of("orders") == Leader(4, None)


def test_a_lost_announcement_is_repeated() -> None:
    one, two, three_ = three()
    exchange(one, two, three_)
    one.lead("orders", 1)
    one.tick([2, 3])  # and the message is lost
    one.lead("others", 1)
    exchange(one, two, three_)
    assert two.of("orders") == two.of("others") == Leader(1, 1)


def test_announcements_beyond_the_message_limit_are_split() -> None:
    one, two, three_ = three()
    for number in range(FACTS_MAX + 5):
        one.lead(f"group-{number}", 1)
    words: list[LeadersTold] = one.tick([2])
    assert len(words[0].facts) == FACTS_MAX
    exchange(one, two, three_)
    assert two.of(f"group-{FACTS_MAX + 4}") == Leader(1, 1)


def test_waiters_are_notified_of_every_change() -> None:
    one = Leaders(1, 11)
    heard: list[str] = []
    one.on_change = heard.append
    one.lead("orders", 1)
    one.lead("orders", 1)
    one.cease("orders")
    assert heard == ["orders", "orders"]


def test_every_broker_learns_the_in_sync_replicas_and_each_change() -> None:
    one, two, three_ = three()
    one.lead("orders", 4, (1, 2, 3))
    exchange(one, two, three_)
    assert two.in_sync("orders") == three_.in_sync("orders") == (1, 2, 3)
    one.lead("orders", 4, (1, 3))
    exchange(one, two, three_)
    assert two.in_sync("orders") == three_.in_sync("orders") == (1, 3)
    assert exchange(one, two, three_) == 0


def test_a_newer_leaders_in_sync_replicas_replace_the_older_ones() -> None:
    one, two, three_ = three()
    one.lead("orders", 4, (1, 2, 3))
    exchange(one, two, three_)
    two.lead("orders", 5, (2, 3))
    exchange(one, two, three_)
    assert one.in_sync("orders") == three_.in_sync("orders") == (2, 3)
    one.lead("orders", 4, (1, 2))
    exchange(one, two, three_)
    assert three_.in_sync("orders") == (2, 3)


def test_without_a_leader_no_replica_is_in_sync() -> None:
    one, two, three_ = three()
    one.lead("orders", 4, (1, 2, 3))
    exchange(one, two, three_)
    one.cease("orders")
    exchange(one, two, three_)
    assert two.in_sync("orders") == ()


def test_a_message_that_arrives_after_a_newer_one_changes_nothing() -> None:
    one, two, three_ = three()
    exchange(one, two, three_)
    one.lead("orders", 4, (1, 2, 3))
    (late,) = one.tick([2])
    one.lead("orders", 4, (1, 3))
    (newer,) = one.tick([2])
    two.receive(newer)
    two.receive(late)
    assert two.in_sync("orders") == (1, 3)
    one.cease("orders")
    (last,) = one.tick([2])
    two.receive(last)
    two.receive(newer)
    assert two.of("orders") == Leader(4, None)
