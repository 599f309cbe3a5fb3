"""TxnOffsetCommit: a group's offsets that take effect when a transaction commits."""

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.errors import KafkaesqueError, NotCoordinator
from kafkaesque.machines.groups.group_commands import (
    Commit,
    Committed,
    Identity,
    TransactionalCommit,
)
from kafkaesque.machines.transactions.transaction_errors import TransactionUnverified
from kafkaesque.machines.transactions.transaction_questions import Check
from kafkaesque.server.answers.ask_coordinator import ask_coordinator, ask_desk
from kafkaesque.server.requests.callback_waits import is_current
from kafkaesque.server.requests.errors import transactional_code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FENCED_SINCE = 3
ABORTABLE_SINCE = 4
ADDS_SINCE = 5

Codes = dict[tuple[str, int], ErrorCode]


async def handle(
    request: TxnOffsetCommitRequest, version: int, session: Session
) -> TxnOffsetCommitResponse:
    """Hold the offsets until the transaction ends, if it may commit for this group."""
    codes: Codes = {}
    catalog = session.broker.catalog
    is_known = all(topic.name in catalog.topics for topic in request.topics)
    is_sure = is_known or await is_current(session.broker)
    offsets = []
    names = {}
    for topic in request.topics:
        for asked in topic.partitions:
            named = topic.name, asked.partition_index
            codes[named], topic_id = _found(topic.name, asked, session)
            if not is_sure and topic.name not in session.broker.catalog.topics:
                codes[named] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            if codes[named] is ErrorCode.NONE:
                place = topic_id, asked.partition_index
                names[place] = named
                metadata = asked.committed_metadata or ""
                offset, term = asked.committed_offset, asked.committed_leader_epoch
                offsets.append((place, offset, term, metadata))
    commit = Commit(
        group=request.group_id,
        generation=request.generation_id,
        member=Identity(member_id=request.member_id, instance_id=request.group_instance_id),
        offsets=tuple(offsets),
    )
    try:
        committed = await _committed(request, commit, version, session)
        for place in committed.refused:
            codes[names[place]] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        for place in committed.homeless:
            codes[names[place]] = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    except KafkaesqueError as error:
        code = transactional_code_of(
            error,
            knows_fenced=version >= FENCED_SINCE,
            knows_abortable=version >= ABORTABLE_SINCE,
        )
        codes |= dict.fromkeys(names.values(), code)
    return _answer(request, codes)


async def _committed(
    request: TxnOffsetCommitRequest, commit: Commit, version: int, session: Session
) -> Committed:
    broker = session.broker
    coordinator = broker.coordinators.of(request.group_id)
    topic = broker.catalog.topics.get(OFFSETS_TOPIC)
    if topic is None:
        raise NotCoordinator("the topic for offsets does not exist")
    producer_id = request.producer_id
    check = Check(
        transactional_id=request.transactional_id,
        producer_id=producer_id,
        epoch=request.producer_epoch,
        place=(topic.topic_id, partition_of(request.group_id, topic.partitions)),
        adds=version >= ADDS_SINCE,
    )
    guard = coordinator.guards.begin(producer_id)
    try:
        number = await ask_desk(session, check)
    finally:  # also when the client disconnects
        is_fresh = coordinator.guards.end(producer_id, guard)

    if not is_fresh or coordinator.has_ended(producer_id, number):
        raise TransactionUnverified("the transaction has ended meanwhile")
    command = TransactionalCommit(commit=commit, producer_id=producer_id)
    return await ask_coordinator(session, coordinator, command)


def _found(
    topic: str, asked: TxnOffsetCommitRequestPartition, session: Session
) -> tuple[ErrorCode, bytes]:
    found = session.broker.catalog.topics.get(topic)
    if found is None or not 0 <= asked.partition_index < found.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, b""
    return ErrorCode.NONE, found.topic_id


def _answer(request: TxnOffsetCommitRequest, codes: Codes) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=codes[topic.name, one.partition_index],
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
