"""A real broker whose journal is damaged returns with `serve --rejoin`, and nothing is lost."""

from pathlib import Path

import pytest

from kafkaesque.errors import KafkaesqueError
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS
from tests.testing.test_cluster import COUNT, Sender, create, read
from tests.testing.test_old_copy import OLD, folder_of

pytestmark = WITHOUT_LEADERS


@pytest.mark.event("journal_lost")
@pytest.mark.complains("journal_lost: this broker starts over in all its groups; *")
def test_a_broker_that_lost_its_journal_is_refilled_by_the_others(tmp_path: Path) -> None:
    with Cluster(3, tmp_path) as cluster:
        journal = folder_of(tmp_path) / "journal"
        create(cluster, "orders")
        sender = Sender(cluster)
        sender.send("orders")
        cluster.stop(OLD)
        journal.write_bytes(b"\0" * journal.stat().st_size)
        with pytest.raises(KafkaesqueError, match="start it once with --rejoin"):
            cluster.restart(OLD)
        process = cluster.process(OLD)
        process._flags.append("--rejoin")
        cluster.restart(OLD)
        sender.send("orders")
        assert read(cluster, "orders", 2 * COUNT) == sender.acknowledged
        others = [node for node in cluster.nodes if node != OLD]
        cluster.kill(others[0])
        sender.send("orders")  # which needs the one that returned
        assert read(cluster, "orders", 3 * COUNT) == sender.acknowledged
        cluster.restart(others[0])
        assert list(folder_of(tmp_path).glob("orders.*/0/*.1.damaged")), "nothing is deleted"
        cluster.stop(OLD)
        with pytest.raises(KafkaesqueError, match="start this broker without --rejoin"):
            cluster.restart(OLD)
        process._flags.remove("--rejoin")
        cluster.restart(OLD)
