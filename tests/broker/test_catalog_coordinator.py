"""The leader of the catalog answers once that holds, and never calls a failure what may be done."""

import random

import pytest

from kafkaesque.broker.cluster.catalog_coordinator import CatalogCoordinator
from kafkaesque.errors import DiskFull, KafkaesqueError, NotLeader, OutcomeUnknown, TopicExists
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import (
    Carried,
    CatalogAnswer,
    CreateTopic,
    MovePartitions,
    Refused,
    Reply,
    Unknown,
    to_answer,
    to_reply,
)
from kafkaesque.machines.catalog.features import supported
from tests.broker.nodes import Node, heartbeat
from tests.log.logs import HandClock


class LedCatalog:
    """The catalog's coordinator on node 1 of three; the others are the test."""

    def __init__(self) -> None:
        self.node = Node()
        self.led: list[Catalog] = []
        self.coordinator = CatalogCoordinator(
            self.node.site(HandClock()),
            supported(),
            lambda: None,
            lambda _: True,
            random.Random(1),
            self.led.append,
        )
        self.node.elect()

    def create(self, name: str) -> list[CatalogAnswer]:
        """Ask for a topic; the list is filled when that is answered."""
        answers: list[CatalogAnswer] = []
        command = CreateTopic(
            name=name, topic_id=name.encode() * 16, partitions=1, replication=1, settings={}
        )
        self.coordinator.ask(command, answers.append)
        self.node.after_event()
        return answers

    def commit(self) -> None:
        """Let another voter acknowledge everything."""
        self.node.accepts(2, self.node.replica.raft.end)

    def lose(self) -> None:
        """Let another broker lead."""
        self.node.step(heartbeat(self.node.replica.raft.term + 1))


def test_a_change_is_answered_once_it_is_committed_with_the_offset_that_shows_it() -> None:
    story = LedCatalog()
    first, second = story.create("a"), story.create("b")
    assert (first, second) == ([], [])
    story.commit()
    assert (first, second) == ([Carried(end=1)], [Carried(end=2)])


def test_a_refusal_waits_for_what_it_is_based_on() -> None:
    story = LedCatalog()
    story.create("a")
    refused = story.create("a")
    assert refused == [], "there may never be such a topic"
    story.commit()
    assert [type(answer) for answer in refused] == [TopicExists]


def test_a_leader_that_is_replaced_knows_only_what_it_has_not_written() -> None:
    story = LedCatalog()
    written, refused = story.create("a"), story.create("a")
    asked: list[CatalogAnswer] = []
    story.coordinator.ask(MovePartitions(moves=[]), asked.append)
    story.lose()
    assert [type(answer) for answer in written] == [OutcomeUnknown]
    assert [type(answer) for answer in refused] == [NotLeader]
    assert [type(answer) for answer in asked] == [NotLeader]
    assert story.coordinator.catalog is None
    assert [type(answer) for answer in story.create("b")] == [NotLeader]


def test_nothing_is_decided_during_a_transfer_of_leadership() -> None:
    story = LedCatalog()
    end = story.node.replica.log.end_offset
    story.node.replica.transfer(2)
    assert [type(answer) for answer in story.create("a")] == [NotLeader]
    story.node.let_the_transfer_fail()
    assert story.node.replica.log.end_offset == end
    answers = story.create("a")
    story.commit()
    assert answers == [Carried(end=end + 1)]


def test_on_a_full_disk_a_change_is_refused_and_the_catalog_keeps_its_leader() -> None:
    story = LedCatalog()
    (catalog,) = story.led
    flusher = story.node.store.flusher
    flusher.is_full = True
    assert [type(answer) for answer in story.create("a")] == [DiskFull]
    assert story.coordinator.catalog is catalog, "it need not be read again: nothing changed it"
    assert not catalog.topics
    flusher.is_full = False
    answers = story.create("a")
    story.commit()
    assert answers == [Carried(end=1)]


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (Carried(end=3), Carried(end=3)),
        (OutcomeUnknown("of a lost term"), Unknown()),
        (TopicExists("a"), Refused(error="TopicExists", text="a")),
    ],
)
def test_another_broker_gets_the_same_answer(answer: CatalogAnswer, reply: Reply) -> None:
    assert to_reply(answer) == reply
    again = to_answer(reply)
    assert type(again) is type(answer)
    assert isinstance(again, KafkaesqueError) or again == answer
