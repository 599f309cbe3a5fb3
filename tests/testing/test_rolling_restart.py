"""All brokers of a cluster are restarted in turn, and an ordinary producer does not notice."""

from collections.abc import Callable

import pytest

from bench.rolling_restart import Load, create, read, roll
from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId

PARTITIONS = 6
PAUSE_MS_MAX = 5_000
"""Far more than is seen here, on a machine that has other things to do."""
BETWEEN_S = 0.5
SENT_MIN = 500


def _restart_all(cluster: Cluster, down: Callable[[NodeId], None]) -> list[int]:
    """Restart all brokers under load; return how long each time a record waited at most, in ms."""
    create(cluster.bootstrap, PARTITIONS)
    load = Load(cluster.bootstrap, PARTITIONS)
    pauses = roll(cluster, down, load, BETWEEN_S)
    load.end()
    assert load.failures == []
    assert load.count > SENT_MIN
    assert read(cluster.bootstrap, load.acknowledged) == load.acknowledged
    return pauses


def test_no_send_fails_and_no_record_waits_long_while_all_brokers_are_restarted() -> None:
    with Cluster(3) as cluster:
        assert max(_restart_all(cluster, cluster.stop)) < PAUSE_MS_MAX


@pytest.mark.long
def test_no_send_fails_while_all_brokers_are_killed_in_turn() -> None:
    with Cluster(3) as cluster:
        _restart_all(cluster, cluster.kill)
