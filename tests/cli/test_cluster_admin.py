"""`kafkaesque cluster` and `doctor` on real brokers: drained, removed, moved, and recovered."""

# mypy: disable-error-code="no-untyped-call"

import json
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.features import CATALOG_VERSION_LAST
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    from kafka import TopicPartition as Partition
    from kafka.admin import KafkaAdminClient

SECONDS_MAX = 60
LOOK_EVERY_S = 0.2
SETTINGS = {"KAFKAESQUE_CLUSTER_PLAN_MS": "500"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, settings=SETTINGS) as running:
        yield running


@pytest.fixture
def cli(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> "Cli":
    return Cli(cluster.bootstrap, capsys)


class Cli:
    """The command line, in this process."""

    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._bootstrap = bootstrap
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        """Run a command; return its exit code and everything that it printed."""
        self._capsys.readouterr()
        code = run([*words, "--bootstrap", self._bootstrap])
        out, err = self._capsys.readouterr()
        return code, out + err

    def status(self) -> dict[str, Any]:
        code, text = self("cluster", "status", "--json")
        assert code == 0, text
        found: dict[str, Any] = json.loads(text)
        return found


def create(cluster: Cluster, topic: str, partitions: int, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(SECONDS_MAX)


def succeed(cli: "Cli", *words: str) -> None:
    """Run a command until it succeeds; its output is shown if that takes too long."""
    deadline = time.monotonic() + SECONDS_MAX
    while (said := cli(*words))[0] != 0:
        assert time.monotonic() < deadline, said[1]
        time.sleep(LOOK_EVERY_S)


def wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_done():
        assert time.monotonic() < deadline, "the condition never holds"
        time.sleep(LOOK_EVERY_S)


def test_a_cluster_at_the_highest_levels_is_not_upgraded(cli: Cli) -> None:
    code, text = cli("cluster", "upgrade")
    assert code == 0, text
    found = {
        one["feature"]: (one["finalised"], one["possible"]) for one in cli.status()["features"]
    }
    assert found["catalog.version"] == (CATALOG_VERSION_LAST, CATALOG_VERSION_LAST)


def catalog_leaders(cluster: Cluster) -> set[int | None]:
    """Return whom the brokers name as the leader of the catalog."""
    found: set[int | None] = set()
    for node in cluster.nodes:
        with Admin(cluster.address(node)) as admin:
            quorum = admin.brokers.quorum()
            found.add(None if quorum is None else quorum.leader)
    return found


@pytest.mark.requirement("Q-4")
def test_status_and_doctor_describe_a_cluster_and_a_topic_gets_more_copies(
    cluster: Cluster, cli: Cli
) -> None:
    create(cluster, "orders", 3, 2)

    def is_whole() -> bool:
        seen = cli.status()
        brokers = seen["brokers"]
        return (
            len(seen["members"]) == 3
            and [(one["broker"], one["state"]) for one in brokers]
            == [(1, "up"), (2, "up"), (3, "up")]
            and sum(one["leads"] for one in brokers) == 3
            and sum(one["replicas"] for one in brokers) == 6
            and seen["topics_with_few_copies"] == ["orders"]
        )

    wait(is_whole)
    # Whoever is asked, the catalog's leader answers.
    wait(lambda: catalog_leaders(cluster) == {cli.status()["catalog_leader"]})
    code, text = cli("doctor")
    assert code == 1
    assert "kafkaesque topic alter orders --replicas 3 --yes" in text
    code, text = cli("topic", "alter", "orders", "--replicas", "3")
    assert code == 1
    assert "nothing was changed" in text
    assert cli("topic", "alter", "orders", "--replicas", "3", "--yes")[0] == 0
    wait(lambda: not cli.status()["moves"])
    succeed(cli, "doctor")
    assert cli("doctor") == (0, "healthy: 3 brokers, 1 topic\n")
    assert cli("topic", "alter", "orders", "--replicas", "4", "--yes")[0] == 1


def test_links_and_leaders_are_counted_for_prometheus(cluster: Cluster) -> None:
    url = f"http://{cluster.address(1)}/metrics"

    def measured() -> dict[str, str]:
        with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
            return dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines())

    for name in ("kafkaesque_partitions_under_replicated", "kafkaesque_catalog_lag"):
        wait(lambda name=name: float(measured()[name]) == 0)  # type: ignore[misc]
    lines = measured()
    for node in (2, 3):
        assert float(lines[f'kafkaesque_link_sent_bytes_total{{node="{node}"}}']) > 0
        assert float(lines[f'kafkaesque_link_received_messages_total{{node="{node}"}}']) > 0
    assert float(lines["kafkaesque_replicas"]) >= 1 + 3
    assert float(lines["kafkaesque_leaders"]) >= 1
    assert float(lines["kafkaesque_elections_total"]) >= float(lines["kafkaesque_leaders"])


def test_kafkas_admin_clients_move_elect_and_describe(cluster: Cluster) -> None:
    create(cluster, "moved", 1, 2)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    place = Partition("moved", 0)
    try:
        quorum = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
        assert {one["replica_id"] for one in quorum["current_voters"]} == {1, 2, 3}
        for nodes in ([3, 1], [1, 2]):
            assert admin.alter_partition_reassignments({place: nodes}) == {place: None}
            wait(lambda: not admin.list_partition_reassignments())
            wait(lambda nodes=nodes: cluster.leader("moved") == nodes[0])  # type: ignore[misc]
        refused = admin.alter_partition_reassignments({place: None})[place]
        assert refused.__name__ == "NoReassignmentInProgressError"
    finally:
        admin.close()
    confluent = AdminClient({"bootstrap.servers": cluster.address(3)})
    wanted = TopicPartition("moved", 0)
    found = confluent.elect_leaders(ElectionType.PREFERRED, [wanted]).result(SECONDS_MAX)
    assert [one.name() for one in found.values()] == ["ELECTION_NOT_NEEDED"]


def test_a_move_to_an_unknown_broker_is_refused(cluster: Cluster, cli: Cli) -> None:
    create(cluster, "staying", 1, 2)
    for words in ((), ("--yes",)):
        code, text = cli("cluster", "move", "staying", "0", "1", "9", *words)
        assert code == 1
        assert "there is no broker 9" in text


def test_a_drain_that_cannot_end_says_why(cluster: Cluster, cli: Cli) -> None:
    create(cluster, "everywhere", 1, 3)
    code, text = cli("cluster", "drain", "2")
    assert code == 1
    assert "it holds partitions with 3 replicas, and only 2 other brokers" in text
    assert "kafkaesque topic alter everywhere --replicas 2 --yes" in text
    assert cli("topic", "delete", "everywhere", "--yes")[0] == 0


@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='broker 3 was removed from the cluster and its *",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: broker 3 was *",
)
def test_a_broker_is_drained_removed_and_refused_when_it_returns(
    cluster: Cluster, cli: Cli
) -> None:
    added = cluster.add()
    code, text = cli("cluster", "remove", "3", "--yes")
    assert code == 1
    assert "broker 3 still" in text
    code, text = cli("cluster", "drain", "3")
    assert code == 1
    assert "add --yes" in text
    assert cli("cluster", "drain", "3", "--yes")[0] == 0
    succeed(cli, "cluster", "remove", "3", "--yes")
    wait(lambda: not cluster.process(3).is_running)
    assert "broker 3 was removed from the cluster" in cluster.process(3).said()
    with pytest.raises(KafkaesqueError, match="broker 3 was removed from the cluster"):
        cluster.process(3).start()
    assert [one["broker"] for one in cli.status()["brokers"]] == [1, 2, added]
    assert cli("cluster", "drain", "3", "--yes")[0] == 1


def test_a_broker_that_is_down_is_listed_with_its_partitions(cluster: Cluster, cli: Cli) -> None:
    create(cluster, "few", 1, 2)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    one = admin.list_topics("few", SECONDS_MAX).topics["few"].partitions[0]
    gone = max(one.replicas)
    cluster.kill(gone)

    def kinds() -> list[str]:
        code, text = cli("doctor", "--json")
        assert code == 1
        return [json.loads(line)["kind"] for line in text.splitlines()]

    wait(lambda: {"leaderless", "broker-down", "under-replicated"} == set(kinds()))
    states = {one["broker"]: one["state"] for one in cli.status()["brokers"]}
    assert states[gone] == "down"
    assert cli.status()["without_leader"] >= 1


@pytest.mark.long
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='broker 1 was removed from the cluster and its *",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: broker 1 was *",
)
@pytest.mark.long
@WITHOUT_LEADERS
def test_one_of_two_brokers_carries_on_when_the_other_is_lost_permanently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(2, tmp_path, settings=SETTINGS) as pair:
        cli = Cli(pair.address(2), capsys)
        create(pair, "orders", 1, 2)
        assert "only two brokers" in cli("doctor")[1]
        pair.kill(1)
        pair.kill(2)
        pair.process(2).launch()
        waits = "broker 2 waits for its cluster: no link to broker 1 at "
        wait(lambda: waits in pair.process(2).said())
        pair.kill(2)
        words = ["cluster", "recover", "--data", str(pair.process(2).data), "--lost", "1"]
        capsys.readouterr()
        assert run(words) == 1
        out, err = capsys.readouterr()
        assert "cluster-metadata\t1\t" in out
        assert "2 groups to continue with broker 2 alone" in err
        assert run([*words, "--yes"]) == 0
        pair.restart(2)
        assert pair.leader("orders") == 2
        # Otherwise the other broker could keep the one copy: for a moment it counts as live.
        wait(lambda: cli.status()["brokers"][0]["state"] == "down")
        assert cli("topic", "alter", "orders", "--replicas", "1", "--yes")[0] == 0
        assert cli("cluster", "drain", "1", "--yes")[0] == 0
        assert cli("topic", "create", "meanwhile")[0] == 0, "only on the other broker"
        succeed(cli, "cluster", "remove", "1", "--yes")
        with pytest.raises(KafkaesqueError, match="broker 1 was removed from the cluster"):
            pair.restart(1)
