"""Which broker the client asks when the one that it asked cannot help."""

import pytest

from kafkaesque.client import router
from kafkaesque.client.errors import RefusedForNow
from kafkaesque.client.topics import LATEST
from kafkaesque.errors import UnknownTopic
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from tests.client.clients import SleepyClock, an_admin
from tests.client.fake_broker import FakeBroker

PLACE = ("orders", 0)
TOPICS = {"orders": 1}
ROW = ListOffsetsPartitionResponse(partition_index=0, error_code=ErrorCode.NONE, offset=7)
TOPIC = ListOffsetsTopicResponse(name="orders", partitions=(ROW,))
TABLE = {ListOffsetsRequest: ListOffsetsResponse(topics=(TOPIC,))}


def a_laggard(controller: FakeBroker) -> FakeBroker:
    """Return a broker that knows no topics, but names number 2 as the controller."""

    def metadata(request: MetadataRequest) -> MetadataResponse:
        one = MetadataResponseBroker(node_id=2, host="127.0.0.1", port=controller.port)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        rows = [
            MetadataResponseTopic(error_code=unknown, name=topic.name, partitions=())
            for topic in request.topics or ()
        ]
        return MetadataResponse(brokers=(one,), controller_id=2, topics=tuple(rows))

    return FakeBroker({MetadataRequest: metadata})


def test_the_controllers_answer_counts_as_the_newest() -> None:
    with (
        FakeBroker(topics=TOPICS) as controller,
        a_laggard(controller) as laggard,
        an_admin(laggard.bootstrap) as admin,
    ):
        with pytest.raises(UnknownTopic):
            admin.topics.describe("orders")
        assert admin.topics.list() == []
        assert admin.topics.describe("orders", is_newest=True).places == [PLACE]
    with (
        FakeBroker(topics=TOPICS) as controller,
        a_laggard(controller) as laggard,
        an_admin(laggard.bootstrap) as admin,
    ):
        assert [one.name for one in admin.topics.list(is_newest=True)] == ["orders"]


@pytest.mark.parametrize("is_in_bootstrap", [False, True])
def test_an_isolated_broker_is_left_for_another_that_it_named(
    is_in_bootstrap: bool,
) -> None:
    clock = SleepyClock()
    with (
        FakeBroker(TABLE, topics=TOPICS) as healthy,
        FakeBroker(topics=TOPICS, others=[(2, healthy.port)]) as cut_off,
    ):
        cut_off.leader = router.NOBODY
        given = [cut_off.bootstrap, healthy.bootstrap] if is_in_bootstrap else [cut_off.bootstrap]
        with an_admin(",".join(given), clock) as admin:
            assert admin.topics.offsets([PLACE], LATEST) == {PLACE: 7}
        assert len(cut_off.requests(MetadataRequest)) == 1
    assert sum(clock.slept) < 1


def test_a_broker_that_could_not_help_is_asked_again_when_the_others_cannot_either() -> None:
    with FakeBroker(topics=TOPICS) as other:
        first = FakeBroker(topics=TOPICS, others=[(2, other.port)])
        first.leader = other.leader = router.NOBODY
        with (
            first,
            an_admin(first.bootstrap) as admin,
            pytest.raises(RefusedForNow, match="partition 0 of topic orders has no leader"),
        ):
            admin.topics.offsets([PLACE], LATEST)
        counts = [len(one.requests(MetadataRequest)) for one in (first, other)]
        assert min(counts) > 1
        assert abs(counts[0] - counts[1]) <= 1
