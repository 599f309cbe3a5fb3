"""Real brokers whose logs lost their ends: they are emptied only while most others are whole."""

from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from kafkaesque.cli.main import run
from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId
from tests.complaints import WITHOUT_LEADERS
from tests.testing.test_repair import VALUES, cluster, metric, read_all, segments_of, until

__all__ = ["cluster"]

pytestmark = [
    pytest.mark.long,
    WITHOUT_LEADERS,
    pytest.mark.complains(
        "damage_found partition=orders.*",
        "refill_waits partition=orders.*",
        "refill_begun partition=orders.*",
        "problem kind=unfilled: the damaged copy of orders.*",
        "problem kind=damaged: the copy of orders-0 is damaged: lost records are restored *",
    ),
]


def cut_short(cluster: Cluster, node: NodeId) -> tuple[Path, bytes]:
    """Truncate the last segment while its broker is stopped."""
    cluster.stop(node)
    path = next(one for one in reversed(segments_of(cluster, node)) if one.stat().st_size)
    data = path.read_bytes()
    path.write_bytes(data[:-10])
    return path, data


def test_two_of_three_copies_without_their_ends_wait_for_an_operator(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = {node: cut_short(cluster, node) for node in (1, 2)}
    for node in lost:
        cluster.restart(node)
    for node, (path, data) in lost.items():
        until(partial(is_waiting, cluster, node), "it waits, and says why")
        assert path.read_bytes() == data[:-10] and not list(path.parent.glob("*.damaged"))
    capsys.readouterr()
    until(lambda: "unfilled" in health(cluster, 1), "/health tells")
    assert run(["doctor", "--bootstrap", cluster.address(3)]) == 1
    assert "the damaged copy of orders" in capsys.readouterr().out
    cluster.stop(2)
    path, data = lost[2]
    path.write_bytes(data)
    cluster.restart(2)
    until(lambda: metric(cluster, 1, "kafkaesque_refills_total") == 1, "one is filled")
    until(lambda: metric(cluster, 1, "kafkaesque_refills_waiting") == 0, "nothing waits")
    assert list(lost[1][0].parent.glob("*.damaged")), "nothing is deleted"
    assert read_all(cluster) == VALUES


def is_waiting(cluster: Cluster, node: NodeId) -> bool:
    says_why = "refill_waits" in cluster.process(node).said()
    return says_why and metric(cluster, node, "kafkaesque_refills_waiting") == 1


def health(cluster: Cluster, node: NodeId) -> str:
    try:
        with urlopen(f"http://{cluster.address(node)}/health") as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        return error.read().decode()
