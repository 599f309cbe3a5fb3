"""Requests that are not what they claim: disconnected with one log line, or refused."""

import struct

import pytest

from kafkaesque.wire.codec import decode
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.api_versions import ApiVersionsResponse
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.fuzz.witness import exactly
from tests.hostile.peers import Hostile, head
from tests.server.running import framed

METADATA, API_VERSIONS, HEARTBEAT, OFFSET_COMMIT = 3, 18, 12, 8
OLD = head(METADATA, 4, is_flexible=False)
NEW = head(METADATA, 9, is_flexible=True)
TAGS_MAX = 1_000_000


@pytest.mark.parametrize(
    "body",
    [
        OLD + struct.pack(">i", 2**31 - 1),
        OLD + struct.pack(">ih", 1, 32_767) + b"ab",
        OLD + struct.pack(">ih", 1, -1) + b"\1",
        OLD + struct.pack(">ih", 1, -7) + b"\1",
        OLD + struct.pack(">ih", 1, 2) + b"\xc3\x28\1",
        NEW + b"\xff\xff\xff\xff\x07",
        NEW + b"\xff\xff\xff\xff\xff\x01",
        NEW + b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        NEW + b"\2\0\0\1\0\0\0",
        NEW + b"\2\4\xff\xfe\xfd\0\1\0\0\0",
        NEW + b"\1\1\0\0\1\0\xff\xff\xff\xff\x0f",
        head(HEARTBEAT, 4, is_flexible=True) + b"\0\0\0\0\0\0\0\0",
        head(METADATA, -1, is_flexible=False) + bytes(20),
        head(METADATA, 32_767, is_flexible=True) + bytes(20),
        head(-1, 0, is_flexible=False) + bytes(20),
        struct.pack(">hhih", METADATA, 4, 1, 5) + b"\xff\xff\xff\xff\xff" + struct.pack(">i", 0),
    ],
    ids=[
        "2^31 elements",
        "a string past the end",
        "null where none may be",
        "a length below -1",
        "no UTF-8",
        "2^31 elements in the compact form",
        "a varint of six bytes",
        "a varint of eleven bytes",
        "null in the compact form",
        "no UTF-8 in the compact form",
        "a tagged field past the end",
        "a null group",
        "version -1",
        "version 32767",
        "API -1",
        "a client id that is no UTF-8",
    ],
)
def test_a_malformed_request_is_disconnected_with_one_log_line(
    hostile: Hostile, body: bytes
) -> None:
    before = hostile.victim.said().count("connection_closed")
    assert hostile.is_disconnected(body)
    assert hostile.victim.said().count("connection_closed") <= before + 1


def test_null_and_empty_arrays_are_distinguished(hostile: Hostile) -> None:
    names = {topic.name for topic in hostile.ask(MetadataRequest(topics=None), 9).topics}
    assert "plain" in names
    assert hostile.ask(MetadataRequest(topics=()), 9).topics == ()


def test_a_million_unknown_tagged_fields_are_skipped(hostile: Hostile) -> None:
    count = b"\xc0\x84\x3d"  # 1,000,000
    tags = count + b"\7\0" * TAGS_MAX
    with hostile.connect() as sock:
        sock.sendall(framed(NEW + b"\1\1\0\0" + tags))
        assert exactly(sock, 8)[4:] == struct.pack(">i", 1)


@pytest.mark.parametrize("version", [5, 6, 99, 32_767, -1])
def test_a_future_version_of_api_versions_is_answered_as_the_first(
    hostile: Hostile, version: int
) -> None:
    with hostile.connect() as sock:
        sock.sendall(framed(struct.pack(">hhih", API_VERSIONS, version, 9, -1) + b"\0" * 8))
        size, correlation_id = struct.unpack(">ii", exactly(sock, 8))
        answer = decode(ApiVersionsResponse, 0, exactly(sock, size - 4))
    assert correlation_id == 9
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [one.api_key for one in answer.api_keys] == [API_VERSIONS]


def test_a_client_id_cannot_forge_a_log_line(hostile: Hostile) -> None:
    name = b"x\r\n2026-01-01 ERROR forged\x1b[2J"
    head_of_it = struct.pack(">hhih", METADATA, 4, 1, len(name)) + name
    assert hostile.is_disconnected(head_of_it + struct.pack(">i", 99))
    assert hostile.says(b"PUBS \x1b[2Jforged {\r\n")[0].startswith(b'{"Ok":false')
    bad = MetadataRequest(topics=(MetadataRequestTopic(name=name.decode()),))
    assert hostile.ask(bad, 9).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "forged" not in hostile.victim.said()
