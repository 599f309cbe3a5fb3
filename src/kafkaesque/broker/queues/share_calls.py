"""Asks the coordinator of share state, on whichever broker it is."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from kafkaesque.broker.cluster.calls import SHARE_STATE
from kafkaesque.broker.cluster.peers import Peers
from kafkaesque.broker.coordination.coordinators import Coordinators, Ready, partition_of
from kafkaesque.broker.machine_hosting.coordinator import Coordinator
from kafkaesque.broker.replication.leader_table import Leader
from kafkaesque.callbacks import ignore
from kafkaesque.errors import KafkaesqueError, NotCoordinator, OutcomeUnknown
from kafkaesque.machines.catalog.catalog import Catalog, Topic
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown, to_refusal
from kafkaesque.machines.queues.share_commands import Adopt, ShareCommand
from kafkaesque.machines.queues.share_questions import ShareAnswer, ShareAsked, to_error
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.machines.queues.share_states import ShareStates
from kafkaesque.types import NodeId

SHARE_TOPIC = "__share_group_state"
SHARE_SETTINGS = {"cleanup.policy": "compact"}

To: TypeAlias = Callable[[Any], None]
"""Gets the answer, or the error."""


class House(Protocol):
    """What it needs of the broker."""

    node: NodeId

    @property
    def catalog(self) -> Catalog:
        """The catalog as this broker knows it."""
        ...

    def partition_leader(self, topic: Topic, index: int) -> Leader:
        """Return a partition's leader, as far as known here."""
        ...


class ShareDesk:
    """Carries commands to the coordinator that keeps a partition's share state."""

    def __init__(self, house: House, peers: Peers, create: Callable[[Ready], None]) -> None:
        self.coordinators: Coordinators[Coordinator[ShareStates]] = Coordinators(create)
        self._house = house
        self._peers = peers
        self._serial = 0

    def next_serial(self) -> int:
        """Return a higher number than ever before in this life of the broker."""
        self._serial += 1
        return self._serial

    def ask(self, place: Place, command: ShareCommand, to: To) -> None:
        """Have a command decided; `to` gets the answer, or the error, perhaps at once.

        The topic is created when it is first needed; until then the error is NotCoordinator. If it
        is not known what became of the command, the error is OutcomeUnknown.
        """
        topic = self._house.catalog.topics.get(SHARE_TOPIC)
        if topic is None:
            self.coordinators.when_ready(ignore)  # the next question finds it
            to(NotCoordinator("the topic of share state is being created"))
            return
        self.ask_at(topic, index_of(place, topic.partitions), command, to)

    def ask_at(self, topic: Topic, index: int, command: ShareCommand, to: To) -> None:
        """Have a command decided by the coordinator on one partition of the topic."""
        node = self._house.partition_leader(topic, index).node
        if node is None:
            to(NotCoordinator("the partition of share state has no leader now"))
        elif node == self._house.node:
            self._ask_here(index, command, to)
        else:
            asked = ShareAsked(partition=index, command=command)
            self._peers.ask(node, SHARE_STATE, asked, lambda answer: to(_read(answer)))

    def answer(self, asked: ShareAsked, reply: Callable[[ShareAnswer], None]) -> None:
        """Answer another broker's question."""

        def told(answer: Any) -> None:
            reply(to_refusal(answer) if isinstance(answer, KafkaesqueError) else answer)

        self._ask_here(asked.partition, asked.command, told)

    def _ask_here(self, index: int, command: ShareCommand, to: To) -> None:
        if isinstance(command, Adopt) and self._house.catalog.topic_by_id(command.place[0]) is None:
            to(NotCoordinator("the topic was deleted, or is not known here yet"))
            return
        try:
            coordinator = self.coordinators.at(index)
        except NotCoordinator as error:
            to(error)
            return
        coordinator.ask(command, to)


def index_of(place: Place, partitions: int) -> int:
    """Return which partition of the topic keeps the state of a place."""
    topic_id, partition = place
    return partition_of(f"{topic_id.hex()}:{partition}", partitions)


def _read(answer: ShareAnswer) -> Any:
    if isinstance(answer, Refused):
        return to_error(answer)
    if isinstance(answer, Unknown):
        return OutcomeUnknown("the coordinator of share state did not answer")
    return answer
