"""The simulated network: what it may do to a message, and that it does no more than configured."""

import random

import pytest

from kafkaesque.raft.messages import Heartbeat, Message
from kafkaesque.raft.roster import Beat
from kafkaesque.sim.network import Network
from kafkaesque.sim.settings import NetworkFaults
from kafkaesque.types import GroupId, NodeId
from tests.sim.disks import Later

GROUP = "orders"
MESSAGES = 200


class Link:
    """A network and everything that it has delivered."""

    def __init__(self, faults: NetworkFaults) -> None:
        self.later = Later()
        self.arrived: list[tuple[GroupId, Heartbeat]] = []
        self.network = Network(faults, random.Random(1), self.later, self._deliver)

    def send(self, count: int = MESSAGES, *, source: NodeId = 1, target: NodeId = 2) -> None:
        for term in range(count):
            message = Heartbeat(source=source, target=target, term=term, commit=0)
            self.network.send(GROUP, message)

    def delays(self) -> list[int]:
        return [delay for delay, _ in self.later.waiting]

    def play(self) -> list[int]:
        """Deliver messages when they are due; return the terms as they arrive."""
        for _, call in sorted(self.later.waiting, key=lambda event: event[0]):
            call()
        self.later.waiting.clear()
        return [message.term for _, message in self.arrived]

    def _deliver(self, group: GroupId, message: Message | Beat) -> None:
        assert isinstance(message, Heartbeat)
        self.arrived.append((group, message))


def test_a_good_network_delivers_everything_once_in_its_group() -> None:
    link = Link(NetworkFaults())
    link.send()
    assert sorted(link.play()) == list(range(MESSAGES))
    assert {group for group, _ in link.arrived} == {GROUP}
    assert (link.network.sent, link.network.dropped) == (MESSAGES, 0)


def test_a_message_is_never_delivered_at_once_nor_after_the_longest_delay() -> None:
    link = Link(NetworkFaults(delay_max=5))
    link.send()
    assert set(link.delays()) == {1, 2, 3, 4, 5}


def test_with_different_delays_messages_overtake_each_other() -> None:
    link = Link(NetworkFaults(delay_max=30))
    link.send()
    arrived = link.play()
    assert arrived != sorted(arrived)


def test_late_messages_take_twenty_times_as_long() -> None:
    link = Link(NetworkFaults(delay_max=2, late_rate=1.0))
    link.send()
    assert set(link.delays()) == {20, 40}


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_messages_are_dropped_about_as_often_as_configured(rate: float) -> None:
    link = Link(NetworkFaults(drop_rate=rate))
    link.send(2_000)
    assert link.network.dropped == 2_000 - len(link.play())
    assert link.network.dropped == pytest.approx(2_000 * rate, rel=0.2)


def test_a_duplicated_message_arrives_twice_and_counts_as_sent_once() -> None:
    link = Link(NetworkFaults(duplicate_rate=1.0))
    link.send(3)
    assert sorted(link.play()) == [0, 0, 1, 1, 2, 2]
    assert link.network.sent == 3


def test_a_cut_stops_one_direction_only() -> None:
    link = Link(NetworkFaults())
    link.network.cut(1, 2)
    link.send(5, source=1, target=2)
    link.send(5, source=2, target=1)
    link.send(5, source=1, target=3)
    link.play()
    assert {(message.source, message.target) for _, message in link.arrived} == {(2, 1), (1, 3)}
    assert link.network.dropped == 5


def test_a_healed_cut_lets_through_what_is_sent_from_then_on() -> None:
    link = Link(NetworkFaults())
    link.network.cut(1, 2)
    link.send(5)
    link.network.heal()
    link.send(2)
    assert sorted(link.play()) == [0, 1]
