"""A real broker whose machine is restored from an image loses nothing and reuses no offset."""

import shutil
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kafkaesque.broker.storage.identity import decode_identity
from kafkaesque.errors import KafkaesqueError
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS
from tests.testing.test_cluster import COUNT, SECONDS_MAX, Sender, create, read

pytestmark = WITHOUT_LEADERS

OLD = 3


@pytest.mark.complains(
    "broker_failed *an old copy: broker * remembers newer data*",
    "old_copy peer=*: broker * remembers newer data than *",
    "tail_lost partition=* offset=*: the disk lost synced *",
    "problem kind=tail-lost: *",
)
def test_a_restored_broker_is_refilled_and_returns_in_sync(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with Cluster(3, tmp_path) as cluster:
        folder = folder_of(tmp_path)
        create(cluster, "orders")
        sender = Sender(cluster)
        sender.send("orders")
        cluster.stop(OLD)
        shutil.copytree(folder, image)
        cluster.restart(OLD)
        create(cluster, "later")
        sender.send("orders")
        cluster.kill(OLD)
        shutil.rmtree(folder)
        shutil.copytree(image, folder)
        begin_again(cluster, folder)
        sender.send("orders")
        assert read(cluster, "orders", 3 * COUNT) == sender.acknowledged
        others = [node for node in cluster.nodes if node != OLD]
        cluster.kill(others[0])
        sender.send("orders")  # which needs the restored one
        assert read(cluster, "orders", 4 * COUNT) == sender.acknowledged
        cluster.restart(others[0])


def folder_of(data: Path) -> Path:
    """Return the folder of the broker whose machine is restored: they join in any order."""
    identities = list(data.glob("broker-*/identity"))
    (found,) = [one for one in identities if decode_identity(one.read_bytes()).node == OLD]
    return found.parent


def begin_again(cluster: Cluster, folder: Path) -> None:
    """Start it, and once more when it has found out that it is an old copy."""
    deadline = time.monotonic() + SECONDS_MAX
    while not list(folder.glob("orders.*/0/*.1.damaged")):  # nothing is deleted
        assert time.monotonic() < deadline, "the old copy is not detected"
        with suppress(KafkaesqueError):
            cluster.heal()
