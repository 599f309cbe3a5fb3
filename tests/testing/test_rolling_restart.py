"""All brokers of a cluster are restarted in turn, and an ordinary producer does not notice."""

from collections.abc import Callable

import pytest

from bench.rolling_restart import Load, create, read, roll
from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId
from tests.complaints import WITHOUT_LEADERS

pytestmark = WITHOUT_LEADERS

PARTITIONS = 6
BETWEEN_S = 0.5
SENT_MIN = 500


def _restart_all(cluster: Cluster, down: Callable[[NodeId], None]) -> None:
    """Restart all brokers under load; the bench measures how long records wait then."""
    create(cluster.bootstrap, PARTITIONS)
    load = Load(cluster.bootstrap, PARTITIONS)
    roll(cluster, down, load, BETWEEN_S)
    load.end()
    assert load.failures == []
    assert load.count > SENT_MIN
    assert read(cluster.bootstrap, load.acknowledged) == load.acknowledged


@pytest.mark.requirement("Q-6")
@pytest.mark.long
def test_no_send_fails_while_all_brokers_are_restarted_in_turn() -> None:
    with Cluster(3) as cluster:
        _restart_all(cluster, cluster.stop)


@pytest.mark.requirement("Q-6")
@pytest.mark.long
def test_no_send_fails_while_all_brokers_are_killed_in_turn() -> None:
    with Cluster(3) as cluster:
        _restart_all(cluster, cluster.kill)
