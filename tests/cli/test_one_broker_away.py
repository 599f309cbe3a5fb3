"""Commands on a real cluster of three, of which one broker is down or cut off."""

# mypy: disable-error-code="no-untyped-call"

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.backup.manifest import MANIFEST_NAME, read_backup
from kafkaesque.cli.consume import Reader
from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.client.errors import Unreachable
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

pytestmark = WITHOUT_LEADERS

SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 25
"""Well below the deadline of a request: no broker that is down is waited for."""
AWAY = 3
GROUPS = [f"readers-{number}" for number in range(6)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(SECONDS_MAX)
        lonely = NewTopic("lonely", 1, replica_assignment=[[AWAY]])
        admin.create_topics([lonely])["lonely"].result(SECONDS_MAX)
        producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": "billing"})
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        producer.produce("orders", b"v")
        producer.commit_transaction(SECONDS_MAX)
        for name in GROUPS:  # of coordinators on all brokers
            reader = Consumer({"bootstrap.servers": running.bootstrap, "group.id": name})
            reader.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
            reader.close()
        running.kill(AWAY)
        yield running


def call(cluster: Cluster, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run a command, and check that it does not wait for the broker that is down."""
    began = time.monotonic()
    capsys.readouterr()
    code = run([*words, "--bootstrap", cluster.address(1)])
    out, err = capsys.readouterr()
    assert time.monotonic() - began < ANSWER_SECONDS_MAX, err
    return code, out, err


def test_all_groups_are_saved_and_listed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = call(cluster, capsys, "backup", str(tmp_path / "saved"), "--topic", "orders")
    assert code == 0, err
    saved = read_backup(tmp_path / "saved" / MANIFEST_NAME)
    assert [one.group for one in saved.groups] == GROUPS
    code, out, err = call(cluster, capsys, "group", "list", "--json")
    assert code == 0, err
    assert [json.loads(line)["group"] for line in out.splitlines()] == GROUPS
    assert err == "no answer from broker 3: output may be incomplete\n"


def test_transactions_are_listed_and_described(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(cluster, capsys, "transaction", "list", "--json")
    assert code == 0, err
    assert [json.loads(line)["transaction"] for line in out.splitlines()] == ["billing"]
    assert "broker 3" in err
    code, out, err = call(cluster, capsys, "transaction", "describe", "billing")
    assert code == 0, err
    assert "CompleteCommit" in out


class HastyClock:
    """Advances whenever it is read."""

    def __init__(self) -> None:
        self._ms = 0

    def now_ms(self) -> int:
        return self.monotonic_ms()

    def monotonic_ms(self) -> int:
        self._ms += 1_000
        return self._ms


@pytest.mark.parametrize("group", [None, "lonely-readers"])
def test_a_reader_that_does_not_follow_is_told_that_a_partition_has_no_leader(
    cluster: Cluster, group: str | None
) -> None:
    reader = Reader(cluster.address(1), HastyClock(), group=group, reset="earliest")
    if group is None:
        reader.assign({("lonely", 0): 0, ("orders", 0): 0}, {("lonely", 0): 9, ("orders", 0): 1})
    else:
        reader.subscribe("lonely")
    try:
        with pytest.raises(Unreachable, match="may have no leader, or"):
            list(reader.records(is_following=False))
    finally:
        reader.close()


def test_an_isolated_broker_is_left_for_the_others(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.restart(AWAY)
    cluster.leader("orders")
    cluster.isolate(1)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        with Admin(cluster.address(1)) as admin:  # until it knows that it is cut off
            while admin.topics.describe("orders").partitions[0].leader == 1:
                assert time.monotonic() < deadline
        words = ["consume", "orders", "--from", "beginning", "--no-follow"]
        code, out, err = call(cluster, capsys, *words)
    finally:
        cluster.heal()
    assert (code, out) == (0, "v\n"), err
