"""Brokers and their quorum, as a fake broker describes them."""

from kafkaesque.client.brokers import ELECTION_MS_MAX, METADATA_TOPIC
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)
from tests.client.clients import SleepyClock, an_admin
from tests.client.fake_broker import FakeBroker, one_after_another

NO_LEADER = DescribeQuorumResponse(error_code=ErrorCode.LEADER_NOT_AVAILABLE, topics=())


def led_by(node: int) -> DescribeQuorumResponse:
    partition = QuorumPartition(
        partition_index=0,
        error_code=ErrorCode.NONE,
        leader_id=node,
        leader_epoch=3,
        high_watermark=7,
        current_voters=(),
        observers=(),
    )
    topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=(topic,))


def test_an_election_of_the_catalogs_leader_is_waited_for() -> None:
    clock = SleepyClock()
    table = {DescribeQuorumRequest: one_after_another(NO_LEADER, NO_LEADER, led_by(2))}
    with FakeBroker(table) as broker, an_admin(broker.bootstrap, clock) as admin:
        quorum = admin.brokers.quorum()
        assert quorum is not None
        assert quorum.leader == 2
    assert len(clock.slept) == 2


def test_a_catalog_without_a_leader_for_long_is_reported() -> None:
    clock = SleepyClock()
    with (
        FakeBroker({DescribeQuorumRequest: NO_LEADER}) as broker,
        an_admin(broker.bootstrap, clock) as admin,
    ):
        assert admin.brokers.quorum() is None
    assert sum(clock.slept) * 1000 + 1_000 >= ELECTION_MS_MAX
    assert sum(clock.slept) * 1000 < 2 * ELECTION_MS_MAX
