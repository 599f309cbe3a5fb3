"""A Channel to the whole cluster: each request goes to the leader it concerns.

So a text client of any broker reaches every partition and every group. Requests for several
partitions are split by leader, and the responses merged. They travel over the links between
brokers, where many wait side by side and none blocks another.
"""

import asyncio
import struct
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import KafkaesqueError, PeerUnreachable, UnknownTopic, WireError
from kafkaesque.net.errors import AnswerLost, MalformedLink
from kafkaesque.net.links import Links
from kafkaesque.net.ports import Question
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.peers.local_channel import LocalChannel
from kafkaesque.server.peers.peering import Ask
from kafkaesque.server.requests.session import Forward
from kafkaesque.types import NodeId
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkaesque.wire.messages.list_offsets import ListOffsetsRequest
from kafkaesque.wire.messages.offset_commit import OffsetCommitRequest
from kafkaesque.wire.messages.offset_fetch import OffsetFetchRequest
from kafkaesque.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

R = TypeVar("R")
T = TypeVar("T")

ONE_LEADER_WAIT_MS_MAX = 5_000
"""How long another broker waits for records: the response must come before the call times out."""

SEVERAL_LEADERS_WAIT_MS_MAX = 1_000
"""The same for several leaders: those without records still wait after the others have answered."""

REQUESTS_PENDING_MAX = 5_000
"""Unanswered requests that one broker has forwarded to another.

Half of a link's calls: however many clients wait for records, commands and transactions still get
through. The answering broker keeps its own count, because it continues with requests that were
given up.
"""

_HEAD = struct.Struct(">hh")


class ClusterChannel:
    """Calls the handlers of this broker, or of others over the links to them."""

    def __init__(self, broker: Broker, local: LocalChannel, links: Links) -> None:
        self._broker = broker
        self._local = local
        self._links = links

    async def call(self, request: Any, response: type[R]) -> R:
        """Send the request to its leader, and return the response."""
        match request:
            case ProduceRequest():
                return cast(R, await self._produce(request))
            case FetchRequest():
                return cast(R, await self._fetch(request))
            case ListOffsetsRequest(topics=(topic,)):
                leader = self._leader(topic.name, topic.partitions[0].partition_index)
                return await self._at(leader, request, response)
            case OffsetFetchRequest(groups=(group,)):
                coordinator = self._broker.coordinator_of(group.group_id)
                return await self._at(coordinator, request, response)
            case OffsetCommitRequest(group_id=name):
                return await self._at(self._broker.coordinator_of(name), request, response)
            case _:
                return await self._local.call(request, response)

    async def _at(self, node: NodeId | None, request: Any, response: type[R]) -> R:
        """Send a request to one broker; without one, the local handler reports the error."""
        if node is None or node == self._broker.node:
            return await self._local.call(request, response)
        answer = await hand_on(self._links, node, request, api_of(type(request)).last)
        assert isinstance(answer, response), "the answer is that of the API"
        return answer

    async def _produce(self, request: ProduceRequest) -> ProduceResponse:
        (topic,) = request.topic_data
        shares = self._shares(topic.name, topic.partition_data, lambda one: one.index)
        parts = [_with(topic, partition_data=tuple(part)) for _, part in shares]
        answers = await asyncio.gather(
            *(
                self._produce_at(node, _with(request, topic_data=(part,)))
                for (node, _), part in zip(shares, parts, strict=True)
            )
        )
        found = [one for answer in answers for one in answer.responses[0].partition_responses]
        whole = _with(answers[0].responses[0], partition_responses=tuple(found))
        return _with(answers[0], responses=(whole,))

    async def _produce_at(self, node: NodeId | None, request: ProduceRequest) -> ProduceResponse:
        """Write at one broker; a failure affects only its partitions."""
        try:
            return await self._at(node, request, ProduceResponse)
        except PeerUnreachable as error:  # nothing was sent, so nothing was written
            return _not_produced(request, ErrorCode.NOT_LEADER_OR_FOLLOWER, str(error))
        except KafkaesqueError as error:  # it may have been written
            return _not_produced(request, ErrorCode.NETWORK_EXCEPTION, str(error))

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        shares = self._shares(topic.topic, topic.partitions, lambda one: one.partition)
        parts = [_with(topic, partitions=tuple(part)) for _, part in shares]
        wait_ms = self._wait_ms(request.max_wait_ms, [node for node, _ in shares])
        answers = await _first_with(
            # A caller that does not wait wants all responses, even if a broker is away.
            _has_something if wait_ms else lambda _: False,
            [
                self._fetch_at(node, _with(request, topics=(part,), max_wait_ms=wait_ms))
                for (node, _), part in zip(shares, parts, strict=True)
            ],
        )
        filled = [answer for answer in answers if answer.responses]
        if not filled:
            return answers[0]
        found = [one for answer in filled for one in answer.responses[0].partitions]
        whole = _with(filled[0].responses[0], partitions=tuple(found))
        return _with(filled[0], responses=(whole,))

    async def _fetch_at(self, node: NodeId | None, request: FetchRequest) -> FetchResponse:
        """Fetch from one broker; one that cannot be reached counts as leaderless."""
        try:
            return await self._at(node, request, FetchResponse)
        except (PeerUnreachable, AnswerLost):
            return _leaderless(request)

    def _wait_ms(self, wanted_ms: int, nodes: Sequence[NodeId | None]) -> int:
        """Return how long each broker waits, this one included: the slowest one counts."""
        if len(nodes) > 1:
            return min(wanted_ms, SEVERAL_LEADERS_WAIT_MS_MAX)
        if nodes[0] in (None, self._broker.node):
            return wanted_ms
        return min(wanted_ms, ONE_LEADER_WAIT_MS_MAX)

    def _shares(
        self, topic: str, partitions: Iterable[T], index: Callable[[T], int]
    ) -> list[tuple[NodeId | None, list[T]]]:
        """Group the partitions by leader."""
        shares: dict[NodeId | None, list[T]] = {}
        for one in partitions:
            shares.setdefault(self._leader(topic, index(one)), []).append(one)
        return list(shares.items())

    def _leader(self, topic: str, partition: int) -> NodeId | None:
        try:
            found = self._broker.topics.topic(topic)
        except UnknownTopic:
            return None
        if not 0 <= partition < found.partitions:
            return None
        return self._broker.partition_leader(found, partition).node


async def hand_on(links: Links, node: NodeId, request: Any, version: int) -> Any:
    """Forward a request to another broker; raises LinkError."""
    api = api_of(type(request))
    data = _HEAD.pack(api.key, version) + encode(request, version)
    try:
        answer = await links.call(node, Ask.REQUEST, data, pending_max=REQUESTS_PENDING_MAX)
        return decode(APIS[api.key].response, version, answer)
    except WireError as error:
        raise MalformedLink(f"the answer of broker {node} cannot be read: {error}") from error


def forwarding(links: Links) -> Forward:
    """Return the function that handlers use to forward requests to other brokers.

    Handlers are stepped and not tasks (`server/requests/coroutine_runner.py`), but a call with a
    deadline must be one: so each gets its own.
    """

    async def forward(node: NodeId, request: Any, version: int) -> Any:
        return await asyncio.ensure_future(hand_on(links, node, request, version))

    return forward


class Forwarded:
    """Answers the requests that other brokers forward to this one."""

    def __init__(self, local: LocalChannel, edge: Edge) -> None:
        self._local = local
        self._edge = edge
        self._tasks: dict[NodeId | None, set[asyncio.Task[None]]] = {}
        """The tasks in progress for each calling broker."""

    def answer(self, question: Question) -> None:
        """Start handling a request; the response is sent when ready.

        Requests to a broker that has just started wait, as clients do: before it has caught up it
        might report an existing topic as unknown.
        """
        try:
            key, version = _HEAD.unpack_from(question.data)
            messages = APIS[key]
            request = decode(messages.request, version, question.data[_HEAD.size :])
        except (KeyError, WireError, ValueError, struct.error) as error:
            question.refuse(f"the request cannot be read: {error}")
            return
        if self._edge.is_open:
            self._begin(question, request, version)
        elif self._edge.waiting < REQUESTS_PENDING_MAX:
            self._edge.when_open(partial(self._begin, question, request, version))
        else:
            question.refuse("this broker has just started, and too many requests wait for it")

    def _begin(self, question: Question, request: Any, version: int) -> None:
        tasks = self._tasks.setdefault(question.node, set())
        if len(tasks) >= REQUESTS_PENDING_MAX:
            question.refuse("too many requests of the calling broker are unanswered")
            return
        task = asyncio.get_running_loop().create_task(self._handle(question, request, version))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _handle(self, question: Question, request: Any, version: int) -> None:
        try:
            question.reply(encode(await self._local.handle(request, version), version))
        except KafkaesqueError as error:
            question.refuse(str(error))


async def _first_with(
    is_wanted: Callable[[R], bool], calls: Sequence[Coroutine[Any, Any, R]]
) -> list[R]:
    """Return the responses once one of them is wanted, or all of them.

    Abandoning the others is harmless: a waiting fetch only reads.
    """
    waiting = {asyncio.ensure_future(call) for call in calls}
    answers: list[R] = []
    try:
        while waiting and not any(map(is_wanted, answers)):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            answers += [call.result() for call in done]
    finally:
        for call in waiting:
            call.cancel()
    return answers


def _not_produced(request: ProduceRequest, code: ErrorCode, reason: str) -> ProduceResponse:
    (topic,) = request.topic_data
    partitions = tuple(
        PartitionProduceResponse(
            index=one.index, error_code=code, base_offset=-1, error_message=reason
        )
        for one in topic.partition_data
    )
    found = TopicProduceResponse(
        topic_id=topic.topic_id, name=topic.name, partition_responses=partitions
    )
    return ProduceResponse(responses=(found,))


def _leaderless(request: FetchRequest) -> FetchResponse:
    (topic,) = request.topics
    partitions = tuple(
        PartitionData(
            partition_index=one.partition,
            error_code=ErrorCode.LEADER_NOT_AVAILABLE,
            high_watermark=-1,
            aborted_transactions=None,
            records=None,
        )
        for one in topic.partitions
    )
    found = FetchableTopicResponse(
        topic_id=topic.topic_id, topic=topic.topic, partitions=partitions
    )
    return FetchResponse(responses=(found,))


def _has_something(answer: FetchResponse) -> bool:
    """Whether it has records, or an error that the caller must see."""
    return answer.error_code != ErrorCode.NONE or any(
        one.records or one.error_code != ErrorCode.NONE
        for topic in answer.responses
        for one in topic.partitions
    )


def _with(message: T, **changes: object) -> T:
    """Return a copy of a message with some fields changed."""
    return cast(T, msgspec.structs.replace(cast(Any, message), **changes))
