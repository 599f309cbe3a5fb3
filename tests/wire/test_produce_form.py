"""Requests recognized by comparison, against what the codec reads and writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import MalformedFrame
from kafkaesque.wire.codec import encode, lenient_decoder
from kafkaesque.wire.header import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)
from kafkaesque.wire.messages.produce import (
    API,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkaesque.wire.produce_form import FIRST_VERSION, ProduceForm, form_of

TOPIC_ID = bytes(range(16))
CLIENT = "a client"
BODY_AT = 8 + 2 + len(CLIENT)

versions = st.integers(FIRST_VERSION, API.last)
batches = st.binary(min_size=1, max_size=400)
int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
names = st.text(min_size=1, max_size=20)


def a_request(
    batch: bytes | None, partition: int = 0, topic: str = "t", acks: int = -1
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    named = TopicProduceData(topic_id=TOPIC_ID, name=topic, partition_data=(data,))
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=(named,))


def a_frame(request: ProduceRequest, version: int, correlation_id: int = 7) -> memoryview:
    header = RequestHeader(API.key, version, correlation_id, CLIENT)
    head = encode_request_header(header, request_header_version(API, version))
    return memoryview(bytearray(head + encode(request, version)))


def start_of(version: int) -> int:
    return BODY_AT + (1 if API.flexible(version) else 0)


def a_form(request: ProduceRequest, version: int) -> ProduceForm:
    frame = a_frame(request, version)
    read = lenient_decoder(ProduceRequest, version)(frame, start_of(version))
    form = form_of(frame, start_of(version), version, read)
    assert form is not None
    return form


@given(versions, names, batches, batches, int32s, int32s)
def test_a_similar_request_is_read_as_by_the_codec(
    version: int, topic: str, first: bytes, second: bytes, partition: int, correlation_id: int
) -> None:
    form = a_form(a_request(first, topic=topic), version)
    frame = a_frame(a_request(second, partition, topic), version, correlation_id)
    found = form.read(frame)
    assert found is not None
    assert found[:2] == (correlation_id, partition)
    assert found[2] == second
    assert not found[2].readonly


@given(versions, names, int32s, int32s, st.tuples(int64s, int64s, int64s))
def test_an_answer_is_written_as_by_the_codec(
    version: int, topic: str, partition: int, correlation_id: int, numbers: tuple[int, int, int]
) -> None:
    offset, append_time_ms, first_offset = numbers
    one = PartitionProduceResponse(
        index=partition,
        error_code=0,
        base_offset=offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=first_offset,
    )
    named = TopicProduceResponse(topic_id=TOPIC_ID, name=topic, partition_responses=(one,))
    head = encode_response_header(correlation_id, response_header_version(API, version))
    body = head + encode(ProduceResponse(responses=(named,)), version)
    form = a_form(a_request(b"batch", topic=topic), version)
    assert form.answer(correlation_id, partition, numbers) == len(body).to_bytes(4) + body


@given(versions, batches, st.integers(0, 500), st.integers(0, 255))
def test_a_changed_frame_is_read_as_by_the_codec_or_not_at_all(
    version: int, batch: bytes, place: int, byte: int
) -> None:
    form = a_form(a_request(b"the batch before it"), version)
    frame = a_frame(a_request(batch, partition=3), version)
    frame[place % len(frame)] = byte
    found = form.read(frame)
    if found is None:
        return
    header_version = request_header_version(API, version)
    header, start = decode_request_header(frame, header_version)
    request = lenient_decoder(ProduceRequest, version)(frame, start)
    (data,) = request.topic_data[0].partition_data
    assert (header.key, header.version, header.client_id) == (API.key, version, CLIENT)
    assert found == (header.correlation_id, data.index, data.records)


@given(versions, st.binary(max_size=60))
def test_bytes_that_are_not_a_request_match_no_form(version: int, data: bytes) -> None:
    form = a_form(a_request(b"batch"), version)
    assert form.read(memoryview(data)) is None


@pytest.mark.parametrize("version", range(FIRST_VERSION, API.last + 1))
def test_requests_with_other_fields_have_another_form(version: int) -> None:
    form = a_form(a_request(b"batch"), version)
    assert form.read(a_frame(a_request(b"batch", acks=1), version)) is None
    other = TopicProduceData(
        topic_id=bytes(16),
        name="u",
        partition_data=a_request(b"batch").topic_data[0].partition_data,
    )
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(other,))
    assert form.read(a_frame(request, version)) is None
    assert form.read(a_frame(a_request(None), version)) is None
    both = a_request(b"batch").topic_data * 2
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=both)
    assert form.read(a_frame(request, version)) is None
    assert form.read(a_frame(a_request(b"batch"), version)[:-1]) is None


@pytest.mark.parametrize("version", range(FIRST_VERSION, API.last + 1))
def test_only_a_single_batch_in_the_usual_encoding_has_a_form(version: int) -> None:
    start = start_of(version)

    def form(frame: memoryview) -> ProduceForm | None:
        try:
            request = lenient_decoder(ProduceRequest, version)(frame, start)
        except MalformedFrame:
            return None
        return form_of(frame, start, version, request)

    usual = a_frame(a_request(b"batch"), version)
    assert form(usual) is not None
    assert form(memoryview(bytes(usual) + b"\0")) is None, "with a trailing byte"
    assert form(a_frame(a_request(None), version)) is None
    twice = a_request(b"batch").topic_data * 2
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=twice)
    assert form(a_frame(request, version)) is None
    if API.flexible(version):
        tagged = memoryview(bytes(usual[:-1]) + b"\1\x63\1\0")
        assert form(tagged) is None, "with an unknown tag"


def test_versions_without_the_first_offset_have_no_form() -> None:
    version = FIRST_VERSION - 1
    frame = a_frame(a_request(b"batch"), version)
    request = lenient_decoder(ProduceRequest, version)(frame, BODY_AT)
    assert form_of(frame, BODY_AT, version, request) is None
