"""What a real cluster of three reports when only one broker is left."""

# mypy: disable-error-code="no-untyped-call"

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

pytestmark = [pytest.mark.compat, WITHOUT_LEADERS]

SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 25
"""Ten of them are for waiting for an election."""


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
            wait(lambda: len(voters(left)) == len(running.nodes))  # else one may carry on alone
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
def test_the_doctor_says_that_no_change_is_possible_and_which_brokers_to_start(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = call(cluster, capsys, "doctor")
    assert code != 0
    assert "the catalog has had no leader" in out
    assert "3 partitions without a leader: orders-0, orders-1, orders-2" in out
    assert "start brokers 2 and 3 again; only if they are gone for good" in out


def test_status_counts_no_partition_as_led_by_a_broker_that_is_down(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = call(cluster, capsys, "cluster", "status", "--json")
    assert code == 0
    seen = json.loads(out)
    assert seen["without_leader"] == 3
    assert seen["catalog_leader"] is None


@pytest.mark.parametrize("words", [["--no-follow"], ["--group", "readers"]])
def test_reading_a_partition_without_a_leader_is_reported(
    words: list[str], cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["consume", "orders", *words, "--bootstrap", cluster.bootstrap])
    assert code == 1
    said = capsys.readouterr().err
    assert "of topic orders has no leader; kafkaesque doctor says why" in said


@pytest.mark.requirement("Q-4")
def test_a_broker_without_a_majority_logs_it_and_is_unhealthy(cluster: Cluster) -> None:
    def health() -> tuple[int, str]:
        try:
            url = f"http://{cluster.address(1)}/health"
            with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    wait(lambda: health()[0] == HTTPStatus.SERVICE_UNAVAILABLE)
    said = health()[1]
    assert "no-majority: the catalog has no leader" in said
    assert "leaderless: no leader for orders-0, orders-1, orders-2" in said
    logged = cluster.process(1).said()
    assert logged.count("problem kind=no-majority") == 1
    assert logged.count("problem kind=leaderless") == 1


def _advised(text: str) -> list[list[str]]:
    """Return the commands that the doctor suggests, without those for more brokers."""
    found = [
        part.strip().removeprefix("or keep fewer replicas: ").split()
        for line in text.splitlines()
        for part in json.loads(line)["command"].split(";")
    ]
    wanted = ("cluster drain", "topic alter", "cluster remove")
    return [one[1:] for one in found if " ".join(one[1:3]) in wanted]


@pytest.mark.requirement("Q-4")
def test_after_a_lost_majority_the_doctors_commands_restore_health(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in the how-to: it once stalled at the topic of the groups' positions."""
    settings = {"KAFKAESQUE_CLUSTER_PLAN_MS": "500"}
    with Cluster(3, tmp_path, settings=settings) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(SECONDS_MAX)
        reader = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "readers"})
        reader.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        reader.close()
        with Admin(running.address(1)) as left:
            wait(lambda: len(voters(left)) == len(running.nodes))
            wait(lambda: not left.brokers.moves())
        for node in running.nodes:
            running.kill(node)
        words = ["cluster", "recover", "--data", str(running.process(1).data)]
        assert run([*words, "--lost", "9"]) == 1
        assert "there is no broker 9" in capsys.readouterr().err
        assert run([*words, "--lost", "2", "--lost", "3", "--yes"]) == 0
        capsys.readouterr()
        running.restart(1)
        deadline = time.monotonic() + SECONDS_MAX
        while (said := call(running, capsys, "doctor", "--json"))[0] != 0:
            assert time.monotonic() < deadline, said[1]
            assert "start broker" not in said[1]
            for command in _advised(said[1]):
                call(running, capsys, *command)
        assert [one["broker"] for one in _brokers(running, capsys)] == [1]
        code, out = call(running, capsys, "group", "describe", "readers", "--json")
        assert (code, "orders" in out) == (0, True)


def test_a_cluster_without_topics_knows_the_given_up_brokers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The doctor once suggested to start them: only partitions that they led showed the loss."""
    with Cluster(3, tmp_path) as running:
        with Admin(running.address(1)) as left:
            wait(lambda: len(voters(left)) == len(running.nodes))
        for node in running.nodes:
            running.kill(node)
        words = ["cluster", "recover", "--data", str(running.process(1).data)]
        assert run([*words, "--lost", "2", "--lost", "3", "--yes"]) == 0
        assert "it drains brokers 2 and 3, which must never be started" in capsys.readouterr().out
        running.restart(1)
        assert call(running, capsys, "topic", "create", "solo", "--replicas", "1")[0] == 0

        def are_drained() -> bool:
            found = {one["broker"]: one["drains"] for one in _brokers(running, capsys)}
            return found == {1: False, 2: True, 3: True}

        wait(are_drained)
        said = call(running, capsys, "doctor")[1]
        assert "start it again" not in said
        assert "start broker" not in said
        assert "cluster drain" not in said
        file = running.process(1).data / "cluster-metadata" / "lost-brokers"
        wait(lambda: not file.exists())


def _brokers(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(
        call(cluster, capsys, "cluster", "status", "--json")[1]
    )["brokers"]
    return found
