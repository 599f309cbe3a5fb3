"""A cluster grows under load, and ordinary clients do not notice."""

import time

import pytest

from bench.rolling_restart import TOPIC, Load, create, read
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

pytestmark = WITHOUT_LEADERS

PARTITIONS = 6
SECONDS_MAX = 60
LOOK_EVERY_S = 0.2


@pytest.mark.requirement("Q-6")
def test_no_send_fails_while_a_broker_joins_and_everything_moves_to_it() -> None:
    # Otherwise the cluster gives other brokers their share back while the test looks.
    settings = {"KAFKAESQUE_CLUSTER_AUTO_REBALANCE": "false"}
    with Cluster(3, settings=settings) as cluster:
        create(cluster.bootstrap, PARTITIONS)
        load = Load(cluster.bootstrap, PARTITIONS)
        added = cluster.add()
        deadline = time.monotonic() + SECONDS_MAX
        with Admin(cluster.bootstrap) as admin:
            goals = {(TOPIC, index): (added, 1, 2) for index in range(PARTITIONS)}
            admin.brokers.move(goals)
            while admin.brokers.moves() or not _is_everywhere(admin, added):
                assert time.monotonic() < deadline, "the moves do not end"
                time.sleep(LOOK_EVERY_S)
        load.end()
        assert load.failures == []
        assert load.count > 0
        assert read(cluster.bootstrap, load.acknowledged) == load.acknowledged


def _is_everywhere(admin: Admin, node: int) -> bool:
    return all(node in one.replicas for one in admin.topics.describe(TOPIC).partitions)
