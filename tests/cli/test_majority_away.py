"""What is told of a real cluster of three of which one broker is left."""

import json
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Cluster

pytestmark = pytest.mark.compat

SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 25
"""Ten of them go to waiting for an election."""


def wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_done():
        assert time.monotonic() < deadline


def voters(admin: Admin) -> set[int]:
    quorum = admin.brokers.quorum()
    return set() if quorum is None else {one.node for one in quorum.voters}


def leaders(admin: Admin) -> set[int]:
    return {one.leader for one in admin.topics.describe("orders").partitions}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(SECONDS_MAX)
        with Admin(running.address(1)) as left:
            wait(lambda: len(voters(left)) == len(running.nodes))  # else one may go on alone
            running.kill(2)
            running.kill(3)
            wait(lambda: not leaders(left) & {1})  # until it knows that it is alone
        yield running


def call(cluster: Cluster, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    began = time.monotonic()
    code = run([*words, "--bootstrap", cluster.address(1)])
    out, err = capsys.readouterr()
    assert time.monotonic() - began < ANSWER_SECONDS_MAX, err
    return code, out


@pytest.mark.requirement("Q-4")
def test_the_doctor_says_that_nothing_can_be_changed_and_which_brokers_to_start(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = call(cluster, capsys, "doctor")
    assert code != 0
    assert "nobody has led the catalog" in out
    assert "3 partitions without a leader: orders-0, orders-1, orders-2" in out
    assert "start broker 2, 3 again" in out


def test_status_counts_no_partition_as_led_by_one_that_is_down(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = call(cluster, capsys, "cluster", "status", "--json")
    assert code == 0
    seen = json.loads(out)
    assert seen["without_leader"] == 3
    assert seen["catalog_leader"] is None
