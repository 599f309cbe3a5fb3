"""Share groups' messages where real clients are strict or odd."""

import pytest

from kafkaesque.errors import MalformedFrame
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kafkaesque.wire.messages.share_acknowledge import (
    AcknowledgedPartition,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kafkaesque.wire.messages.share_fetch import (
    AcknowledgementBatch,
    ShareFetchableTopicResponse,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
    ShareForgottenTopic,
    SharePartitionData,
)

TOPIC = b"t" * 16


def share_fetch_response(records: bytes) -> ShareFetchResponse:
    partition = SharePartitionData(
        partition_index=0,
        error_code=0,
        acknowledge_error_code=0,
        records=records,
        acquired_records=(),
    )
    return ShareFetchResponse(
        error_code=0,
        acquisition_lock_timeout_ms=30_000,
        responses=(ShareFetchableTopicResponse(topic_id=TOPIC, partitions=(partition,)),),
        node_endpoints=(),
    )


def test_a_share_fetch_of_librdkafka_names_a_topic_twice_and_both_are_kept() -> None:
    data = bytes.fromhex(
        "02 67 02 6d 00 00 00 02"  # group g, member m, session epoch 2
        "00 00 01 f4 00 00 00 01 03 20 00 00"  # 500 ms, 1 byte to 50 MiB
        "00 00 01 f4 00 00 00 0a"  # 500 records in batches of 10
        "03"  # two topics
        f"{TOPIC.hex()} 02 00 00 00 01 01 00 00"  # partition 1, new to the session
        f"{TOPIC.hex()} 02 00 00 00 00 02"  # partition 0, with one batch
        "00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 09 02 01 00 00 00"  # 5 to 9, accepted
        f"02 {TOPIC.hex()} 02 00 00 00 03 00 00"  # partition 3 is forgotten
    )
    added = ShareFetchPartition(partition_index=1, acknowledgement_batches=())
    accepted = AcknowledgementBatch(first_offset=5, last_offset=9, acknowledge_types=(1,))
    settled = ShareFetchPartition(partition_index=0, acknowledgement_batches=(accepted,))
    request = ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=2,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 * 2**20,
        max_records=500,
        batch_size=10,
        topics=(
            ShareFetchTopic(topic_id=TOPIC, partitions=(added,)),
            ShareFetchTopic(topic_id=TOPIC, partitions=(settled,)),
        ),
        forgotten_topics_data=(ShareForgottenTopic(topic_id=TOPIC, partitions=(3,)),),
    )
    assert decode(ShareFetchRequest, 1, data) == request
    assert encode(request, 1) == data


@pytest.mark.parametrize("version", [1, 2])
def test_a_share_fetch_without_records_has_empty_bytes_and_no_leader(version: int) -> None:
    assert encode(share_fetch_response(b""), version).hex(" ") == (
        "00 00 00 00 00 00 00 00 00 75 30 "  # not throttled, no error, locked for 30 s
        f"02 {TOPIC.hex(' ')} 02 00 00 00 00 00 00 00 00 00 00 "  # partition 0, no errors
        "ff ff ff ff ff ff ff ff 00 "  # no leader, no epoch, no tagged fields
        "01 01 "  # records of no bytes, no acquired records
        "00 00 01 00"  # the tagged fields of partition and topic, no nodes, tagged fields
    )


@pytest.mark.parametrize("version", [1, 2])
def test_null_for_the_records_of_a_share_fetch_is_refused(version: int) -> None:
    data = bytearray(encode(share_fetch_response(b"x"), version))
    data[data.index(b"\x02x") : data.index(b"\x02x") + 2] = b"\x00"
    with pytest.raises(MalformedFrame, match="records is null"):
        decode(ShareFetchResponse, version, data)


def test_an_answer_to_acknowledgements_without_a_hint_names_no_leader() -> None:
    partition = AcknowledgedPartition(partition_index=0, error_code=0)
    response = ShareAcknowledgeResponse(
        error_code=0,
        acquisition_lock_timeout_ms=30_000,
        responses=(ShareAcknowledgeTopicResponse(topic_id=TOPIC, partitions=(partition,)),),
        node_endpoints=(),
    )
    renewed = decode(ShareAcknowledgeResponse, 2, encode(response, 2))
    leader = renewed.responses[0].partitions[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (-1, -1)
    assert renewed.acquisition_lock_timeout_ms == 30_000
    assert decode(ShareAcknowledgeResponse, 1, encode(response, 1)).acquisition_lock_timeout_ms == 0


def test_all_topics_of_a_share_group_and_none_are_told_apart() -> None:
    groups = tuple(
        DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=topics) for topics in (None, ())
    )
    request = DescribeShareGroupOffsetsRequest(groups=groups)
    assert encode(request, 1).hex(" ") == "03 02 67 00 00 02 67 01 00 00"
    assert decode(DescribeShareGroupOffsetsRequest, 1, encode(request, 1)) == request
