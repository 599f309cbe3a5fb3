"""One broker's way to the others: what it has for them goes out over links, what they have comes.

The links know where everybody is from three sources, the later ones being better: the addresses
that the data folder remembers, the catalog, and what gossip heard last. A broker that comes back at
another address is found by that, though nobody could reach it to write it into the catalog.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Annotated, TypeVar

import msgspec

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.copies import CopyAsked, CopyTold
from kafkaesque.broker.identity import DIRECTORY_BYTES, FolderIdentity, KnownPeer
from kafkaesque.broker.leaders import LeadersTold
from kafkaesque.broker.peers import AnswerTo, Beat, CopyTo, Message, RangeTo, ReplyTo
from kafkaesque.broker.ranges import RangeAnswer, RangeAsked
from kafkaesque.broker.wall_clocks import ClockTold
from kafkaesque.cluster_config import GossipConfig, LinkConfig
from kafkaesque.errors import (
    AnswerLost,
    KafkaesqueError,
    LinkError,
    MalformedLink,
)
from kafkaesque.gossip.gossip import Gossip
from kafkaesque.gossip.messages import Member
from kafkaesque.machines import transaction_questions
from kafkaesque.machines.catalog import removed_text
from kafkaesque.machines.catalog_commands import (
    AdmitBroker,
    Carried,
    Command,
    Refused,
    Reply,
    Unknown,
    to_refusal,
)
from kafkaesque.machines.feature_errors import UnsupportedLevel
from kafkaesque.machines.features import Range
from kafkaesque.net.gossiping import Gossiping
from kafkaesque.net.handshake import FEATURES_MAX, Identity
from kafkaesque.net.links import Links, Peer
from kafkaesque.net.ports import LinkPorts, Question
from kafkaesque.server.standing import standing_of, watch_standing
from kafkaesque.server.turn import Turn
from kafkaesque.types import Buffer, GroupId, NodeId

T = TypeVar("T")
W = TypeVar("W", LeadersTold, ClockTold)

ASK_MS_MAX = 10_000
"""How long a change of the catalog may take elsewhere; then its outcome is unknown."""


class Ask(IntEnum):
    """The kinds of calls between brokers."""

    COMMAND = 1
    JOIN = 2
    GOSSIP = 3
    REQUEST = 4
    STANDING = 5
    TRANSACTION = 6
    RANGE = 7
    COPY = 8
    REMEMBERED = 9


class Tell(IntEnum):
    """The kinds of notes between brokers."""

    LEADERS = 1
    GOSSIP = 2
    CLOCK = 3


class Application(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What a broker says that wants to join: its data folder, and where it will be."""

    directory: Annotated[
        bytes, msgspec.Meta(min_length=DIRECTORY_BYTES, max_length=DIRECTORY_BYTES)
    ]
    host: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    port: Annotated[int, msgspec.Meta(gt=0, lt=1 << 16)]
    rack: Annotated[str, msgspec.Meta(max_length=255)]
    levels: Annotated[dict[str, tuple[int, int]], msgspec.Meta(max_length=FEATURES_MAX)] = {}


class Admission(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What a broker is told that joins: its cluster, its number, and where the others are."""

    cluster: str
    node: NodeId
    peers: tuple[KnownPeer, ...]
    refusal: str = ""
    """Why the cluster will not have it, whenever it asks; then the rest says nothing."""


_encode = msgspec.msgpack.Encoder().encode
_commands = msgspec.msgpack.Decoder(Command)
_replies = msgspec.msgpack.Decoder(Reply)
_questions = msgspec.msgpack.Decoder(transaction_questions.Question)
_answers = msgspec.msgpack.Decoder(transaction_questions.Answer)
_ranges_asked = msgspec.msgpack.Decoder(RangeAsked)
_ranges = msgspec.msgpack.Decoder(RangeAnswer)
_copies_asked = msgspec.msgpack.Decoder(CopyAsked)
_copies = msgspec.msgpack.Decoder(CopyTold)
_applications = msgspec.msgpack.Decoder(Application)
_leaders = msgspec.msgpack.Decoder(LeadersTold)
_clocks = msgspec.msgpack.Decoder(ClockTold)
_nodes = msgspec.msgpack.Decoder(NodeId)


class Peering:
    """The others, as the broker sees them (`broker/peers.py`), and the broker, as they see it."""

    def __init__(
        self,
        folder: FolderIdentity,
        me: Member,
        secret: bytes,
        configs: tuple[LinkConfig, GossipConfig],
        turn: Turn,
        supports: Mapping[str, Range],
        seeds: Sequence[tuple[str, int]] = (),
    ) -> None:
        """`me` is what gossip tells of this broker; `seeds` are addresses to look for others at."""
        self.on_peers: Callable[[tuple[KnownPeer, ...]], None] = _ignore
        """Told when somebody is somewhere else than was known."""
        self.on_request: Callable[[Question], None] = _refuse
        """Told of the requests of clients that another broker hands on."""
        link_config, gossip_config = configs
        chance = random.SystemRandom()
        identity = Identity(
            cluster=folder.cluster,
            node=folder.node,
            directory=folder.directory,
            session=1 + chance.getrandbits(60),
            secret=secret,
            features={name: last for name, (_, last) in supports.items()},
        )
        ports = LinkPorts(
            deliver=self._deliver,
            receive=self._receive_beat,
            on_question=self._on_question,
            on_note=self._on_note,
            on_received=self._on_received,
            on_suspect=self._on_suspect,
            admits=self._admits,
        )
        self.links = Links(identity, ports, link_config, chance)
        seeds = [*seeds, *((peer.host, peer.port) for peer in folder.peers)]
        self.gossiping = Gossiping(
            Gossip(me, seeds, gossip_config, chance),
            self.links,
            call=Ask.GOSSIP,
            note=Tell.GOSSIP,
            on_change=self._heard_of,
        )
        self._folder = folder
        self._me = me
        self._turn = turn
        self._known: dict[NodeId, KnownPeer] = {peer.node: peer for peer in folder.peers}
        self._is_in_event = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._broker: Broker

    # ── life ─────────────────────────────────────────────────────────────────────────────────

    def attach(self, broker: Broker) -> None:
        """Learn whom this is for; before anything is sent."""
        self._broker = broker
        broker.on_catalog = self.refresh

    def start(self) -> None:
        """Begin to hold links to everybody that is known."""
        self.links.start(_links_to(self._known.values()))

    async def close(self) -> None:
        """Say good-bye and hang up; whoever still waits for a reply is told that it is unknown."""
        await self.gossiping.close(is_leaving=True)
        await self.links.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def known(self) -> tuple[KnownPeer, ...]:
        """Every other broker, and where it was last."""
        return tuple(self._known[node] for node in sorted(self._known))

    def refresh(self) -> None:
        """Follow the catalog: who was added or removed, who moved."""
        brokers = self._broker.committed_catalog.machine.brokers
        if not brokers:
            return  # the copy has not caught up with anything yet
        known = {}
        heard = self.gossiping.gossip.members
        for one in brokers.values():
            if one.node != self._folder.node:
                member = heard.get(one.node)
                # A broker that came back elsewhere is not in the catalog until it is reached there.
                at = member if member is not None and member.is_there else one
                known[one.node] = KnownPeer(
                    node=one.node, host=at.host, port=at.port, directory=one.directory
                )
        self._set(known)

    def _heard_of(self, member: Member) -> None:
        """Take what gossip says of where a broker is, which is newer than the catalog."""
        found = self._known.get(member.node)
        if found is None or not member.is_there:
            return
        moved = KnownPeer(
            node=member.node, host=member.host, port=member.port, directory=found.directory
        )
        self._set({**self._known, member.node: moved})

    def _set(self, known: dict[NodeId, KnownPeer]) -> None:
        if known == self._known:
            return
        self._known = known
        self.links.set_peers(_links_to(known.values()))
        self.on_peers(self.known)

    # ── out: what the broker has for the others ──────────────────────────────────────────────

    def send(self, group: GroupId, message: Message) -> None:
        """Take a message of a group to its target."""
        self.links.send(message.target, group, message)

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Return whether something bulky of a group still waits to be sent to a broker."""
        return self.links.is_sending(target, group)

    def beat(self, beat: Beat) -> None:
        """Take a beat to its target."""
        self.links.send_beat(beat)

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """Take word of leaders or of the time to its target."""
        kind = Tell.LEADERS if isinstance(told, LeadersTold) else Tell.CLOCK
        self.links.note(told.target, kind, _encode(told))

    def ask(self, target: NodeId, command: Command, reply: ReplyTo) -> None:
        """Take a command to another broker, and the reply back."""
        self._begin_task(self._ask(target, Ask.COMMAND, _encode(command), _replies, reply))

    def consult(
        self, target: NodeId, question: transaction_questions.Question, answer: AnswerTo
    ) -> None:
        """Take a question about transactions to another broker, and the answer back."""
        data = _encode(question)
        self._begin_task(self._ask(target, Ask.TRANSACTION, data, _answers, answer))

    def ask_range(self, target: NodeId, asked: RangeAsked, told: RangeTo) -> None:
        """Ask another broker for some of a log, and bring the answer back."""
        self._begin_task(self._ask(target, Ask.RANGE, _encode(asked), _ranges, told))

    def ask_copy(self, target: NodeId, asked: CopyAsked, told: CopyTo) -> None:
        """Ask another broker how its copy of a log is, and bring the answer back."""
        self._begin_task(self._ask(target, Ask.COPY, _encode(asked), _copies, told))

    def _begin_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(
        self,
        target: NodeId,
        kind: Ask,
        question: bytes,
        answers: msgspec.msgpack.Decoder[T],
        reply: Callable[[T | Refused | Unknown], None],
    ) -> None:
        answer: T | Refused | Unknown
        try:
            answer = answers.decode(await self.links.call(target, kind, question, ASK_MS_MAX))
        except (AnswerLost, msgspec.MsgspecError):
            answer = Unknown()
        except LinkError as error:
            answer = to_refusal(error)
        self._turn.begin()
        try:
            reply(answer)
            self._broker.flush()
        finally:
            self._turn.end()

    # ── in: what the others have for the broker ──────────────────────────────────────────────

    def _begin(self) -> None:
        """All that came with one read is one event; `_on_received` ends it."""
        if not self._is_in_event:
            self._is_in_event = True
            self._turn.begin()

    def _deliver(self, group: GroupId, message: Message) -> None:
        self._begin()
        self._broker.replicas.deliver(group, message)

    def _receive_beat(self, beat: Beat) -> None:
        self._begin()
        self._broker.replicas.receive_beat(beat)

    def _on_received(self) -> None:
        self._broker.flush()
        if self._is_in_event:
            self._is_in_event = False
            self._turn.end()

    def _on_suspect(self, node: NodeId) -> None:
        self._turn.begin()
        try:
            self._broker.suspect(node)
        finally:
            self._turn.end()

    def _on_note(self, node: NodeId, kind: int, data: memoryview) -> None:
        """Take a note; raises MalformedLink for one that makes no sense, which cuts the link."""
        if kind == Tell.GOSSIP:
            self.gossiping.receive(data)
        elif kind == Tell.LEADERS:
            told = self._told(node, data, _leaders)
            self._begin()
            self._broker.replicas.receive_leaders(told)
        elif kind == Tell.CLOCK:
            self._broker.clocks.receive(self._told(node, data, _clocks))
        # Other kinds are a later version's, and can do without us.

    def _told(self, node: NodeId, data: memoryview, decoder: msgspec.msgpack.Decoder[W]) -> W:
        try:
            told = decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise MalformedLink(f"what a broker tells cannot be read: {error}") from None
        if (told.source, told.target) != (node, self._folder.node):
            raise MalformedLink("what a broker tells is from or for somebody else")
        return told

    def _on_question(self, question: Question) -> None:
        match question.kind:
            case Ask.COMMAND if question.node is not None:
                self._begin()
                self._carry_out(question)
            case Ask.JOIN:
                self._begin()
                self._admit(question)
            case Ask.TRANSACTION if question.node is not None:
                self._begin()
                self._consult(question)
            case Ask.RANGE if question.node is not None:
                self._begin()
                self._give_range(question)
            case Ask.COPY if question.node is not None:
                self._tell_copy(question)
            case Ask.REQUEST if question.node is not None:
                self.on_request(question)
            case Ask.GOSSIP:
                self.gossiping.receive(question.data)
                question.reply(b"")
            case Ask.STANDING:
                self._tell_standing(question)
            case Ask.REMEMBERED:
                self._tell_remembered(question)
            case _:
                question.refuse(f"this broker knows no call of kind {question.kind}")

    def _carry_out(self, question: Question) -> None:
        try:
            command = _commands.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"this broker does not know the command: {error}")
            return
        self._broker.carry_out(command, lambda reply: question.reply(_encode(reply)))

    def _consult(self, question: Question) -> None:
        try:
            asked = _questions.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"this broker does not know the question: {error}")
            return
        self._broker.consult(asked, lambda answer: question.reply(_encode(answer)))

    def _give_range(self, question: Question) -> None:
        try:
            asked = _ranges_asked.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"this broker does not know the question: {error}")
            return
        question.reply(_encode(self._broker.give_range(asked)))

    def _tell_copy(self, question: Question) -> None:
        try:
            asked = _copies_asked.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"this broker does not know the question: {error}")
            return
        question.reply(_encode(self._broker.tell_copy(asked)))

    def _admit(self, question: Question) -> None:
        """Give a broker that joins its number; it becomes a member when it has told of itself."""
        try:
            asked = _applications.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"the application cannot be read: {error}")
            return
        command = AdmitBroker(
            directory=asked.directory,
            host=asked.host,
            port=asked.port,
            rack=asked.rack,
            levels=asked.levels,
        )

        def replied(reply: Reply) -> None:
            match reply:
                case Carried(first_id=node):
                    question.reply(self._admission(node))
                case Refused(error=UnsupportedLevel.__name__, text=text):
                    question.reply(_refusal(text))
                case Refused(text=text):
                    question.refuse(text)
                case Unknown():
                    question.refuse("the cluster has no leader at the moment")

        try:
            self._broker.ask(command, replied)
        except UnsupportedLevel as error:
            question.reply(_refusal(str(error)))
        except KafkaesqueError as error:
            question.refuse(str(error) or "the cluster has no leader at the moment")

    def _admits(self, node: NodeId | None, directory: bytes) -> str | None:
        """Say why a broker may have no link; one that was removed never has one again."""
        return None if node is None else self._removed(node)

    def _removed(self, node: NodeId) -> str | None:
        is_removed = node in self._broker.replicas.removed
        return removed_text(node) if is_removed else None

    def _tell_standing(self, question: Question) -> None:
        try:
            question.reply(standing_of(question.data, self._removed))
        except msgspec.MsgspecError as error:
            question.refuse(f"the question cannot be read: {error}")

    def _tell_remembered(self, question: Question) -> None:
        """Tell a broker that has lost its journal what is known of it here."""
        try:
            node = _nodes.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"the question cannot be read: {error}")
            return
        told = self._broker.remembered(node)
        question.reply(_encode(msgspec.structs.replace(told, refusal=self._removed(node) or "")))

    async def watch_standing(self, on_removed: Callable[[str], None]) -> None:
        """Ask those who have no link with us whether we were removed; goes on until cancelled."""

        def addresses() -> list[tuple[str, int]]:
            linked = set(self.links.nodes)
            return [(peer.host, peer.port) for peer in self.known if peer.node not in linked]

        await watch_standing(self.links, Ask.STANDING, self._folder.node, addresses, on_removed)

    def _admission(self, node: NodeId) -> Buffer:
        # From what this broker tells of itself: its copy of the catalog may lack it for a while.
        me = KnownPeer(
            node=self._folder.node,
            host=self._me.host,
            port=self._me.port,
            directory=self._folder.directory,
        )
        others = tuple(peer for peer in self.known if peer.node != node)
        return _encode(Admission(cluster=self._folder.cluster, node=node, peers=(me, *others)))


def _links_to(peers: Iterable[KnownPeer]) -> list[Peer]:
    return [
        Peer(node=peer.node, host=peer.host, port=peer.port, directory=peer.directory)
        for peer in peers
    ]


def _refusal(text: str) -> bytes:
    return _encode(Admission(cluster="", node=0, peers=(), refusal=text))


def _refuse(question: Question) -> None:
    question.refuse("this broker does not serve yet")


def _ignore(_: object) -> None:
    """Nobody listens yet."""
