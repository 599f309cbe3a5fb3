"""Floods of members, groups and producers, and extreme numbers."""

import re
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pytest

from kafkaesque.broker.coordination.coordinators import partition_of
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaesque.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaesque.wire.messages.find_coordinator import FindCoordinatorRequest
from kafkaesque.wire.messages.init_producer_id import InitProducerIdRequest
from kafkaesque.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaesque.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.fuzz.victim import Victim
from tests.fuzz.witness import ask
from tests.hostile.conftest import attacked
from tests.hostile.peers import Hostile
from tests.server.running import request

SAID_SECONDS_MAX = 120
"""A broker looks for problems every five seconds, and reports one that it saw twice."""


def a_join(
    group: str, *, metadata: bytes = b"", protocols: int = 1, **fields: int | str | None
) -> JoinGroupRequest:
    known = tuple(
        JoinGroupRequestProtocol(name=f"p{number}", metadata=metadata)
        for number in range(protocols)
    )
    usual = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": ""}
    return JoinGroupRequest(
        group_id=group,
        protocol_type="consumer",
        protocols=known,
        **(usual | fields),  # type: ignore[arg-type]
    )


@pytest.fixture(autouse=True)
def _coordinator(hostile: Hostile) -> None:
    find_coordinator(hostile)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Hostile]:
    """An attacker of a separate broker: what it leaves there affects no other test."""
    with Victim(tmp_path) as victim, attacked(victim) as hostile:
        find_coordinator(hostile)
        yield hostile


def find_coordinator(hostile: Hostile) -> None:
    hostile.ask(FindCoordinatorRequest(key="g", coordinator_keys=("g",)), 4)


def await_complaint(victim: Victim, text: str) -> None:
    """Wait until a broker complains of this, and check that it complains of nothing else."""
    deadline = time.monotonic() + SAID_SECONDS_MAX
    while text not in victim.said():
        assert time.monotonic() < deadline, victim.said()
        time.sleep(0.1)
    found = re.findall(r"^\S+ \S+ (?:WARNING|ERROR) (.*)$", victim.trouble() or "", re.MULTILINE)
    assert [one.startswith(text) for one in found] == [True]


def test_an_empty_commit_gets_an_empty_answer(hostile: Hostile) -> None:
    for version in range(2, 10):
        message = OffsetCommitRequest(group_id="empty", member_id="", topics=())
        assert hostile.ask(message, version).topics == ()


def test_long_offset_metadata_is_limited_and_the_broker_reports_the_limit(
    alone: Hostile,
) -> None:
    parts = 100
    topic = CreatableTopic(
        name="wide", num_partitions=parts, replication_factor=1, assignments=(), configs=()
    )
    alone.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 4)
    noted = OffsetCommitRequestTopic(
        name="wide",
        partitions=tuple(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=1, committed_metadata="n" * 4_000
            )
            for index in range(parts)
        ),
    )
    config = GroupConfig()
    names = (f"notes-{number}" for number in count())
    here = (name for name in names if partition_of(name, config.offsets_partitions) == 0)
    codes: list[int] = []
    with alone.connect() as sock:
        for name in islice(here, 2 * config.offsets_bytes_max // (parts * 4_000)):
            message = OffsetCommitRequest(group_id=name, member_id="", topics=(noted,))
            answer = ask(sock, request(message, 5), OffsetCommitRequest, 5)
            codes += [one.error_code for one in answer.topics[0].partitions]
    taken = codes.count(ErrorCode.NONE)
    # Names of groups count too.
    assert 0.99 < taken / (config.offsets_bytes_max // (256 + 4_000)) <= 1
    assert set(codes[taken:]) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    await_complaint(
        alone.victim, "problem kind=crowded: at least 90% of the limit is used by group offsets: "
    )


def test_a_member_with_a_megabyte_of_metadata_is_refused(hostile: Hostile) -> None:
    message = a_join("large", metadata=bytes((1 << 20) + 1))
    assert hostile.ask(message, 5).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_with_every_protocol_is_refused(hostile: Hostile) -> None:
    message = a_join("wide", protocols=GroupConfig().protocols_max + 1)
    assert hostile.ask(message, 5).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_instance_id_of_maximum_length_is_answered(hostile: Hostile) -> None:
    message = a_join("instance", group_instance_id="i" * 32_767)
    answer = hostile.ask(message, 5)
    assert answer.error_code == ErrorCode.NONE
    assert len(answer.member_id) < 32_767


def test_unused_member_ids_are_limited_like_members(hostile: Hostile) -> None:
    codes = []
    with hostile.connect() as sock:
        for _ in range(GroupConfig().members_max + 10):
            data = request(a_join("crowd"), 5)
            codes.append(ask(sock, data, JoinGroupRequest, 5).error_code)
    assert codes.count(ErrorCode.MEMBER_ID_REQUIRED) == GroupConfig().members_max
    assert codes[-1] == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_too_many_members_leaving_at_once_are_refused(hostile: Hostile) -> None:
    hostile.ask(a_join("leaving"), 5)
    members = (MemberIdentity(member_id="", group_instance_id="i"),) * 50_000
    answer = hostile.ask(LeaveGroupRequest(group_id="leaving", members=members), 4)
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("session_timeout_ms", [0, -1, -(2**31), 1_800_001, 2**31 - 1])
def test_extreme_session_timeouts_are_refused(hostile: Hostile, session_timeout_ms: int) -> None:
    message = a_join("time", session_timeout_ms=session_timeout_ms)
    assert hostile.ask(message, 5).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("rebalance_timeout_ms", [-1, -(2**31), 2**31 - 1])
def test_any_rebalance_timeout_is_accepted(hostile: Hostile, rebalance_timeout_ms: int) -> None:
    message = a_join("rebalance", rebalance_timeout_ms=rebalance_timeout_ms)
    assert hostile.ask(message, 5).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_flood_for_producer_ids_gets_each_one_once(hostile: Hostile) -> None:
    message = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    with hostile.connect() as sock:
        data = request(message, 2)
        given = [ask(sock, data, InitProducerIdRequest, 2).producer_id for _ in range(5_000)]
    assert len(set(given)) == len(given)


def test_a_request_for_huge_partitions_is_not_waited_for(
    hostile: Hostile,
) -> None:
    wanted = tuple(
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=100 << 20)
        for number in range(10_000)
    )
    message = FetchRequest(
        max_wait_ms=2**31 - 1,
        min_bytes=2**31 - 1,
        max_bytes=2**31 - 1,
        topics=(FetchTopic(topic="plain", partitions=wanted),),
    )
    answer = hostile.ask(message, 11)
    codes = {one.error_code for one in answer.responses[0].partitions}
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes


def test_a_client_that_waits_long_and_disconnects_is_forgotten(hostile: Hostile) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    message = FetchRequest(
        max_wait_ms=2**31 - 1,
        min_bytes=2**31 - 1,
        topics=(FetchTopic(topic="compacted", partitions=(wanted,)),),
    )
    for _ in range(200):
        with hostile.connect() as sock:
            sock.sendall(request(message, 11))
