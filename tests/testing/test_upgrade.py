"""A cluster is upgraded broker by broker under load, and its level is raised when all are new."""

import subprocess
import sys

import pytest

from bench.rolling_restart import Load, create, read, roll
from kafkaesque.client.admin import Admin
from kafkaesque.client.errors import Refused
from kafkaesque.client.features import FeatureInfo
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.features import CATALOG_VERSION_LAST as LAST
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

pytestmark = WITHOUT_LEADERS

CAP = "KAFKAESQUE_CLUSTER_CATALOG_VERSION_MAX"
OLD = {CAP: "1"}
PARTITIONS = 3
BETWEEN_S = 0.5
ALL_FINALISED = f"catalog.version {LAST}, share.version 1 is finalised\n"


def level(cluster: Cluster, name: str = "catalog.version") -> FeatureInfo:
    with Admin(cluster.bootstrap) as admin:
        (found,) = [one for one in admin.features.list() if one.name == name]
        return found


def upgrade(cluster: Cluster, *words: str) -> tuple[int, str]:
    """Run `kafkaesque cluster upgrade`; return the exit code and the output."""
    return say(cluster, "cluster", "upgrade", *words)


def say(cluster: Cluster, *words: str) -> tuple[int, str]:
    """Run a command; return the exit code and the output."""
    command = [sys.executable, "-m", "kafkaesque", *words]
    done = subprocess.run(
        [*command, "--bootstrap", cluster.bootstrap], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_brokers_are_replaced_by_newer_ones_under_load_and_then_older_ones_are_refused() -> None:
    with Cluster(3, settings=OLD) as cluster:
        create(cluster.bootstrap, PARTITIONS)
        load = Load(cluster.bootstrap, PARTITIONS)
        _upgrade_one(cluster)
        with (
            Admin(cluster.bootstrap) as admin,
            pytest.raises(Refused, match=r"broker [23] supports catalog.version 1 to 1, not 2"),
        ):
            admin.features.finalize({"catalog.version": 2})
        roll(cluster, cluster.stop, load, BETWEEN_S)
        assert (level(cluster).finalized, level(cluster).possible) == (1, LAST)
        assert upgrade(cluster)[0] != 0
        assert level(cluster).finalized == 1, "without --yes it is only shown"
        assert upgrade(cluster, "--yes") == (0, ALL_FINALISED)
        assert level(cluster).finalized == LAST
        roll(cluster, cluster.kill, load, BETWEEN_S)
        load.end()
        assert load.failures == []
        assert read(cluster.bootstrap, load.acknowledged) == load.acknowledged
        assert level(cluster).finalized == LAST
        _old_ones_are_refused(cluster)


def test_a_new_setting_is_refused_until_all_brokers_are_new_and_the_level_is_raised() -> None:
    words = ("topic", "alter", "orders", "--set", "max.compaction.lag.ms=60000")
    with Cluster(3, settings={CAP: "2"}) as cluster:
        assert say(cluster, "topic", "create", "orders")[0] == 0
        cluster.stop(1)
        del cluster.settings[CAP]
        cluster.restart(1)
        code, text = say(cluster, *words)
        assert code != 0
        assert "run `kafkaesque cluster upgrade --yes`" in text
        assert upgrade(cluster, "--yes")[0] == 0
        assert say(cluster, *words)[0] != 0, "two brokers are still older ones"
        assert level(cluster, "share.version").possible == 0
        for node in (2, 3):
            cluster.stop(node)
            cluster.restart(node)
        assert level(cluster, "share.version").finalized == 0
        assert upgrade(cluster, "--yes") == (0, ALL_FINALISED)
        assert say(cluster, *words)[0] == 0
        assert level(cluster, "share.version").finalized == 1


def _upgrade_one(cluster: Cluster) -> None:
    """Replace the first broker: from here on two versions are one cluster."""
    cluster.stop(1)
    del cluster.settings[CAP]
    cluster.restart(1)
    assert (level(cluster).finalized, level(cluster).possible) == (1, 1)


def _old_ones_are_refused(cluster: Cluster) -> None:
    cluster.settings[CAP] = "1"
    cluster.stop(3)
    with pytest.raises(KafkaesqueError, match=r"supports catalog.version 1 to 1, but the cluster"):
        cluster.restart(3)
    with pytest.raises(
        KafkaesqueError, match=rf"cannot join .* finalised level {LAST}: use a newer"
    ):
        cluster.add()
