"""One broker's messages to and from the others, which travel over links.

Peers' addresses come from three sources, each better than the one before: the data folder, the
catalog, and gossip. A broker that returns at another address is found through gossip, although it
cannot be reached to update the catalog.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, TypeVar

import msgspec

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.calls import CALLS, CallKind
from kafkaesque.broker.cluster.peers import Beat, Message
from kafkaesque.broker.cluster.wall_clocks import ClockTold
from kafkaesque.broker.replication.leader_table import LeadersTold
from kafkaesque.broker.storage.identity import DIRECTORY_BYTES, FolderIdentity, KnownPeer
from kafkaesque.callbacks import ignore
from kafkaesque.errors import LinkError, OutcomeUnknown
from kafkaesque.gossip.config import GossipConfig
from kafkaesque.gossip.gossip import Gossip
from kafkaesque.gossip.messages import Member
from kafkaesque.machines.catalog.catalog import removed_text
from kafkaesque.machines.catalog.catalog_commands import (
    AdmitBroker,
    Carried,
    CatalogAnswer,
    Refused,
    Unknown,
    to_refusal,
)
from kafkaesque.machines.catalog.catalog_errors import UnsupportedLevel
from kafkaesque.machines.catalog.features import Range
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.errors import AnswerLost, MalformedLink
from kafkaesque.net.gossip_transport import Gossiping
from kafkaesque.net.handshake import FEATURES_MAX, Identity
from kafkaesque.net.links import Links, Peer
from kafkaesque.net.ports import LinkPorts, Question
from kafkaesque.server.peers.removal_check import standing_of, watch_standing
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.types import Buffer, GroupId, NodeId

Q = TypeVar("Q")
A = TypeVar("A")
W = TypeVar("W", LeadersTold, ClockTold)

ASK_MS_MAX = 10_000
"""How long another broker may take for a catalog change; then its outcome is unknown."""


class Ask(IntEnum):
    """The kinds of calls between brokers that their peering answers; `CALLS` has the others."""

    JOIN = 2
    GOSSIP = 3
    REQUEST = 4
    STANDING = 5
    REMEMBERED = 9


class Tell(IntEnum):
    """The kinds of notes between brokers."""

    LEADERS = 1
    GOSSIP = 2
    CLOCK = 3


class Application(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A broker's request to join: its data folder and its address."""

    directory: Annotated[
        bytes, msgspec.Meta(min_length=DIRECTORY_BYTES, max_length=DIRECTORY_BYTES)
    ]
    host: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    port: Annotated[int, msgspec.Meta(gt=0, lt=1 << 16)]
    rack: Annotated[str, msgspec.Meta(max_length=255)]
    levels: Annotated[dict[str, tuple[int, int]], msgspec.Meta(max_length=FEATURES_MAX)] = {}


class Admission(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The reply to a joining broker: its cluster, its number, and the others' addresses."""

    cluster: str
    node: NodeId
    peers: tuple[KnownPeer, ...]
    refusal: str = ""
    """Why the cluster refuses it for good; then the other fields are empty."""


_encode = msgspec.msgpack.Encoder().encode
_applications = msgspec.msgpack.Decoder(Application)
_leaders = msgspec.msgpack.Decoder(LeadersTold)
_clocks = msgspec.msgpack.Decoder(ClockTold)
_nodes = msgspec.msgpack.Decoder(NodeId)


class Peering:
    """The other brokers as this one sees them (`broker/cluster/peers.py`), and this one as they see
    it.
    """

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
        """`me` is this broker's entry in gossip; `seeds` are addresses to find others at."""
        self.on_peers: Callable[[tuple[KnownPeer, ...]], None] = ignore
        """Called when a peer's address changes."""
        self.on_request: Callable[[Question], None] = _refuse
        """Called for client requests that another broker forwards."""
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
        """Set the broker; before anything is sent."""
        self._broker = broker
        broker.on_catalog = self.refresh

    def start(self) -> None:
        """Start keeping links to all known brokers."""
        self.links.start(_links_to(self._known.values()))

    async def close(self) -> None:
        """Announce the departure and close the links; pending calls end as unknown."""
        await self.gossiping.close(is_leaving=True)
        await self.links.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def known(self) -> tuple[KnownPeer, ...]:
        """Every other broker with its last known address."""
        return tuple(self._known[node] for node in sorted(self._known))

    def refresh(self) -> None:
        """Follow the catalog: brokers added, removed or moved."""
        brokers = self._broker.committed_catalog.machine.brokers
        if not brokers:
            return  # the copy has not caught up with anything yet
        known = {}
        heard = self.gossiping.gossip.members
        for one in brokers.values():
            if one.node != self._folder.node:
                member = heard.get(one.node)
                # A broker that returned elsewhere is not in the catalog until it is reached there.
                at = member if member is not None and member.is_there else one
                known[one.node] = KnownPeer(
                    node=one.node, host=at.host, port=at.port, directory=one.directory
                )
        self._set(known)

    def _heard_of(self, member: Member) -> None:
        """Take a broker's address from gossip, which is newer than the catalog."""
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

    # ── outgoing ──────────────────────────────────────────────────────────────────────────────

    def send(self, group: GroupId, message: Message) -> None:
        """Send a group's message to its target."""
        self.links.send(message.target, group, message)

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Return whether bulky data of a group is still queued for a broker."""
        return self.links.is_sending(target, group)

    def beat(self, beat: Beat) -> None:
        """Send a beat to its target."""
        self.links.send_beat(beat)

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """Send news of leaders or of the time to its target."""
        kind = Tell.LEADERS if isinstance(told, LeadersTold) else Tell.CLOCK
        self.links.note(told.target, kind, _encode(told))

    def ask(
        self,
        target: NodeId,
        kind: CallKind[Q, A],
        question: Q,
        reply: Callable[[A | Refused | Unknown], None],
    ) -> None:
        """Send a question to another broker, and return its reply."""
        self._begin_task(self._ask(target, kind, _encode(question), reply))

    def _begin_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(
        self,
        target: NodeId,
        kind: CallKind[Q, A],
        question: bytes,
        reply: Callable[[A | Refused | Unknown], None],
    ) -> None:
        answer: A | Refused | Unknown
        try:
            data = await self.links.call(target, kind.number, question, ASK_MS_MAX)
            answer = kind.answer.decode(data)
        except (AnswerLost, msgspec.MsgspecError):
            answer = Unknown()
        except LinkError as error:
            answer = to_refusal(error)
        self._turn.begin()
        try:
            reply(answer)
        finally:
            self._turn.end()

    # ── incoming ──────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        """Everything from one read is one event; `_on_received` ends it."""
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
        """Receive a note; an invalid one raises MalformedLink, which cuts the link."""
        if kind == Tell.GOSSIP:
            self.gossiping.receive(data)
        elif kind == Tell.LEADERS:
            told = self._told(node, data, _leaders)
            self._begin()
            self._broker.replicas.receive_leaders(told)
        elif kind == Tell.CLOCK:
            self._broker.clocks.receive(self._told(node, data, _clocks))
        # Other kinds belong to later versions, which need no reaction.

    def _told(self, node: NodeId, data: memoryview, decoder: msgspec.msgpack.Decoder[W]) -> W:
        try:
            told = decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise MalformedLink(f"a note cannot be read: {error}") from None
        if (told.source, told.target) != (node, self._folder.node):
            raise MalformedLink("a note has the wrong sender or receiver")
        return told

    def _on_question(self, question: Question) -> None:
        kind = CALLS.get(question.kind)
        if kind is not None and question.node is not None:
            self._begin()
            self._answer(kind, question)
            return
        match question.kind:
            case Ask.JOIN:
                self._begin()
                self._admit(question)
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
                question.refuse(f"unknown kind of call: {question.kind}")

    def _answer(self, kind: CallKind[Any, Any], question: Question) -> None:
        try:
            asked = kind.question.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"this broker does not know the question: {error}")
            return
        self._broker.answer(kind, asked, lambda answer: question.reply(_encode(answer)))

    def _admit(self, question: Question) -> None:
        """Assign a joining broker its number; it becomes a member once it has reported itself."""
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

        def answered(answer: CatalogAnswer) -> None:
            match answer:
                case Carried(first_id=node):
                    question.reply(self._admission(node))
                case UnsupportedLevel():
                    question.reply(_refusal(str(answer)))
                case OutcomeUnknown():
                    question.refuse("the cluster has no leader at the moment")
                case error:
                    question.refuse(str(error))

        self._broker.ask(command, answered)

    def _admits(self, node: NodeId | None, directory: bytes) -> str | None:
        """Return why a broker may not have a link; a removed one is refused forever."""
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
        """Answer a broker without its journal with what is remembered of it here."""
        try:
            node = _nodes.decode(question.data)
        except msgspec.MsgspecError as error:
            question.refuse(f"the question cannot be read: {error}")
            return
        told = self._broker.remembered(node)
        question.reply(_encode(msgspec.structs.replace(told, refusal=self._removed(node) or "")))

    async def watch_standing(self, on_removed: Callable[[str], None]) -> None:
        """Ask unlinked brokers whether this one was removed; runs until cancelled."""

        def addresses() -> list[tuple[str, int]]:
            linked = set(self.links.nodes)
            return [(peer.host, peer.port) for peer in self.known if peer.node not in linked]

        await watch_standing(self.links, Ask.STANDING, self._folder.node, addresses, on_removed)

    def _admission(self, node: NodeId) -> Buffer:
        # From this broker's own entry: its copy of the catalog may lack it for a while.
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
