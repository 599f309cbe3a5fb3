"""Admin clients that outlive the controller that they know, on three real brokers."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

SECONDS_MAX = 30
"""Far below the minutes for which librdkafka waits for a lost controller."""

pytestmark = [pytest.mark.chaos, WITHOUT_LEADERS]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        yield running


def admin_of(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address, "log_level": 0})


def controller(cluster: Cluster) -> int:
    return int(admin_of(cluster.bootstrap).list_topics(timeout=SECONDS_MAX).controller_id)


def create(admin: AdminClient, name: str, replicas: int = 2) -> None:
    wanted = NewTopic(name, 1, replicas)
    try:
        admin.create_topics([wanted], request_timeout=SECONDS_MAX)[name].result(SECONDS_MAX)
    except KafkaException as error:
        # It went to the broker that was being killed: its client cannot know the outcome.
        if error.args[0].code() != KafkaError._TRANSPORT:
            raise
        admin.create_topics([wanted], request_timeout=SECONDS_MAX)[name].result(SECONDS_MAX)


def test_a_client_with_one_connection_creates_topics_after_the_controller_died(
    cluster: Cluster,
) -> None:
    lost = controller(cluster)
    for node in cluster.nodes:
        admin = admin_of(cluster.address(node))
        assert admin.list_topics(timeout=SECONDS_MAX).controller_id == lost
        if node != lost:
            break
    cluster.kill(lost)
    create(admin, "orders")


def test_a_client_of_only_the_controller_creates_topics_after_it_died(cluster: Cluster) -> None:
    lost = controller(cluster)
    admin = admin_of(cluster.address(lost))
    create(admin, "before", replicas=3)
    cluster.kill(lost)
    create(admin, "orders")
    assert {"before", "orders"} <= admin.list_topics(timeout=SECONDS_MAX).topics.keys()


def test_a_client_of_all_brokers_creates_topics_after_the_controller_died(
    cluster: Cluster,
) -> None:
    lost = controller(cluster)
    admin = admin_of(cluster.bootstrap)
    create(admin, "before", replicas=3)
    assert admin.list_consumer_groups().result(SECONDS_MAX).errors == []
    cluster.kill(lost)
    create(admin, "orders")


def test_a_client_that_learned_of_the_controller_only_from_itself_creates_topics(
    cluster: Cluster,
) -> None:
    lost = controller(cluster)
    admin = admin_of(cluster.address(lost))
    assert admin.list_consumer_groups().result(SECONDS_MAX).errors == []  # asks all brokers
    cluster.kill(lost)
    create(admin, "orders")
