"""The configuration files that the adapters write for the systems that they start."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.field.__main__ import SYSTEMS
from bench.field.adapters import activemq, kafka, kafkaesque, nats, rabbitmq, redis
from bench.field.fetched import LIBRARIES, pom
from bench.field.system import Durability

FOLDER = Path("/some/folder")


def test_kafka_is_broker_and_controller_in_one_and_listens_on_loopback_only() -> None:
    text = kafka.server_properties(1, [kafka.Ports(client=1111, controller=2222)], FOLDER)
    rows = dict(row.split("=", 1) for row in text.splitlines())
    assert rows["process.roles"] == "broker,controller"
    assert rows["listeners"] == "PLAINTEXT://127.0.0.1:1111,CONTROLLER://127.0.0.1:2222"
    assert rows["controller.quorum.voters"] == "1@127.0.0.1:2222"
    assert rows["log.dirs"] == "/some/folder/data-1"
    assert kafka.port_of(text) == 1111


def test_every_kafka_node_knows_all_controllers_and_has_its_own_data() -> None:
    ports = [kafka.Ports(client=1000 + n, controller=2000 + n) for n in (1, 2, 3)]
    texts = [kafka.server_properties(node, ports, FOLDER) for node in (1, 2, 3)]
    rows = [dict(row.split("=", 1) for row in text.splitlines()) for text in texts]
    voters = "1@127.0.0.1:2001,2@127.0.0.1:2002,3@127.0.0.1:2003"
    assert {row["controller.quorum.voters"] for row in rows} == {voters}
    assert len({row["log.dirs"] for row in rows}) == 3
    assert [kafka.port_of(text) for text in texts] == [1001, 1002, 1003]
    assert rows[0]["offsets.topic.replication.factor"] == "3"
    assert rows[0]["transaction.state.log.min.isr"] == "2"


def test_kafka_is_named_kafka() -> None:
    (found,) = ElementTree.fromstring(pom("4.9.9")).iter("dependency")
    names = [found.findtext(name) for name in ("groupId", "artifactId", "version")]
    assert names == ["org.apache.kafka", "kafka_2.13", "4.9.9"]


def test_kafkaesque_is_started_like_a_user_starts_it() -> None:
    words = kafkaesque.command(1111, FOLDER)
    assert words[words.index(sys.executable) + 1 :] == [
        *("-m", "kafkaesque", "serve"),
        *("--listen", "127.0.0.1", "--port", "1111", "--data", "/some/folder/data"),
    ]


def test_no_measured_start_of_kafkaesque_includes_compilation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafkaesque, "CACHE", tmp_path)
    system = kafkaesque.Kafkaesque()
    system.prepare(system.variants()[0], tmp_path)
    assert list(tmp_path.glob("compiled/**/kafkaesque/node.*.pyc"))


def test_further_kafkaesque_brokers_join_the_first_one() -> None:
    words = kafkaesque.command(2222, FOLDER, join="127.0.0.1:1111")
    assert words[-4:] == ["--data", "/some/folder/data-2222", "--join", "127.0.0.1:1111"]


@pytest.mark.parametrize(
    ("durability", "row"),
    [
        (Durability.MEMORY, "appendonly no"),
        (Durability.OS, "appendfsync everysec"),
        (Durability.ALWAYS, "appendfsync always"),
    ],
)
def test_redis_is_as_durable_as_the_mode_promises(durability: Durability, row: str) -> None:
    rows = redis.config(durability, 1111, FOLDER).splitlines()
    assert row in rows
    assert {"bind 127.0.0.1", "port 1111", "dir /some/folder"} <= set(rows)


def test_nats_syncs_only_on_request() -> None:
    ports = nats.Ports(client=1111, route=2222, look=3333)
    assert "sync_interval: always" in nats.config(Durability.ALWAYS, ports, [ports], FOLDER)
    alone = nats.config(Durability.OS, ports, [ports], FOLDER)
    assert "sync_interval" not in alone
    assert "cluster" not in alone
    assert 'listen: "127.0.0.1:1111"' in alone


def test_nats_servers_know_each_other_and_are_named_by_their_ports() -> None:
    ports = [nats.Ports(client=10 + n, route=20 + n, look=30 + n) for n in (1, 2, 3)]
    text = nats.config(Durability.OS, ports[1], ports, FOLDER)
    assert 'server_name: "12"' in text
    assert 'listen: "127.0.0.1:22"' in text
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in (21, 22, 23))
    assert f"routes: [{routes}]" in text
    state = {"account_details": [{"stream_detail": [{"name": "s", "cluster": {"leader": "13"}}]}]}
    assert nats.leader_in(state, "s") == 13


@pytest.mark.parametrize(
    ("version", "is_new"), [("2.9.10", False), ("2.10.0", True), ("2.12.1-beta", True)]
)
def test_nats_can_sync_from_a_certain_version_on(version: str, is_new: bool) -> None:
    assert nats.is_at_least(version, (2, 10)) is is_new


def test_activemq_syncs_by_default_and_syncing_can_be_disabled() -> None:
    for durability, word in ((Durability.ALWAYS, "always"), (Durability.OS, "never")):
        root = ElementTree.fromstring(activemq.config(durability, 1111, FOLDER))
        (store,) = root.iter("{http://activemq.apache.org/schema/core}kahaDB")
        assert store.attrib["journalDiskSyncStrategy"] == word
        (door,) = root.iter("{http://activemq.apache.org/schema/core}transportConnector")
        assert door.attrib["uri"] == "stomp://127.0.0.1:1111"


def test_activemqs_version_is_read_from_its_library() -> None:
    manifest = "Manifest-Version: 1.0\r\nImplementation-Version: 5.17.2\r\n"
    assert activemq.version_in(manifest) == "5.17.2"
    assert activemq.version_in("Manifest-Version: 1.0\n") == "unknown"


def test_rabbitmq_keeps_everything_in_the_given_folder() -> None:
    ports = {"amqp": 1, "stream": 2, "mapper": 3, "distribution": 4}
    assert "listeners.tcp.1 = 127.0.0.1:1" in rabbitmq.config(ports)
    assert "stream.listeners.tcp.1 = 127.0.0.1:2" in rabbitmq.config(ports)
    places = rabbitmq.environment(ports, FOLDER)
    paths = [value for value in places.values() if "/" in value]
    assert paths
    assert all(path.startswith("/some/folder") for path in paths)


def test_systems_that_need_nothing_installed_have_one_default_mode() -> None:
    for system in (kafkaesque.Kafkaesque(), kafka.Kafka(), redis.Redis(), activemq.ActiveMq()):
        variants = [variant for variant in system.variants() if variant.brokers == 1]
        assert [variant.is_default for variant in variants].count(True) == 1
        assert all(variant.name.startswith(f"{system.name}-") for variant in variants)
        assert all(variant.driver in LIBRARIES for variant in variants)
        assert all(variant.reader in {"", *LIBRARIES} for variant in variants)


def test_every_system_says_how_to_install_it() -> None:
    assert all(make().package for make in SYSTEMS)
    assert len({make.name for make in SYSTEMS}) == len(SYSTEMS)
