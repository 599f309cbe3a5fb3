"""Settings: where they come from, which wins, and what is refused."""

from pathlib import Path

import pytest

from kafkaesque.coordinator_config import MigrationPolicy
from kafkaesque.errors import BadConfiguration
from kafkaesque.log.offset_index import RELATIVE_MAX
from kafkaesque.machines.catalog.catalog import PARTITIONS_MAX
from kafkaesque.settings import KEYS, Key, Settings, load

NUMBERS = [key for key in KEYS.values() if key.kind is int]
HUGE = (1 << 63) - 1


def a_file(folder: Path, text: str) -> Path:
    path = folder / "kafkaesque.toml"
    path.write_text(text)
    return path


def test_without_settings_the_defaults_apply() -> None:
    assert load(None, {}, {}) == Settings()


def test_flags_override_variables_override_the_file_overrides_defaults(tmp_path: Path) -> None:
    file = a_file(tmp_path, '[server]\nport = 1\nlisten = "a"\nadvertised = "a:1"\n')
    variables = {"KAFKAESQUE_SERVER_PORT": "2", "KAFKAESQUE_SERVER_LISTEN": "b"}
    server = load(file, variables, {"server.port": 3}).server
    assert (server.port, server.listen, server.advertised) == (3, "b", "a:1")
    assert server.stop_ms == Settings().server.stop_ms


def test_every_kind_of_value_can_be_set_in_both_ways(tmp_path: Path) -> None:
    file = a_file(tmp_path, '[server]\ndata = "x"\n[broker]\nauto_create_topics = false\n')
    assert load(file, {}, {}).server.data == Path("x")
    assert load(file, {}, {}).broker.auto_create_topics is False
    variables = {"KAFKAESQUE_SERVER_DATA": "y", "KAFKAESQUE_BROKER_AUTO_CREATE_TOPICS": "false"}
    assert load(None, variables, {}).server.data == Path("y")
    assert load(None, variables, {}).broker.auto_create_topics is False


def test_a_choice_can_be_set_in_both_ways_and_accepts_nothing_else(tmp_path: Path) -> None:
    file = a_file(tmp_path, '[groups]\nconsumer_migration_policy = "upgrade"\n')
    assert load(file, {}, {}).broker.groups.consumer_migration_policy is MigrationPolicy.UPGRADE
    variable = "KAFKAESQUE_GROUPS_CONSUMER_MIGRATION_POLICY"
    found = load(None, {variable: "disabled"}, {}).broker.groups.consumer_migration_policy
    assert found is MigrationPolicy.DISABLED
    with pytest.raises(BadConfiguration, match="one of disabled, upgrade, downgrade"):
        load(None, {variable: "sideways"}, {})


def test_a_variable_can_name_the_file(tmp_path: Path) -> None:
    file = a_file(tmp_path, "[limits]\nconnections_max = 5\n")
    assert load(None, {"KAFKAESQUE_CONFIG": str(file)}, {}).limits.connections_max == 5


def test_every_key_has_its_own_variable() -> None:
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[serve]\n", "has 'serve'"),
        ("port = 1\n", "has 'port'"),
        ("[server]\nprot = 1\n", "sets server.prot, which does not exist"),
        ('[server]\nport = "1"\n', "server.port in .* must be a whole number"),
        ("[server]\nport = true\n", "server.port in .* must be a whole number"),
        ("[server]\nport = 70000\n", "server.port in .* must be from 0 to 65535"),
        ("[broker]\nauto_create_topics = 1\n", "must be true or false"),
        ("[limits]\nconnections_max = 0\n", "limits.connections_max in .* must be from 1"),
        ("[server\n", "is not TOML"),
    ],
)
def test_an_invalid_file_is_refused_in_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(BadConfiguration, match=sentence):
        load(a_file(tmp_path, text), {}, {})


def test_a_missing_file_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="cannot read"):
        load(tmp_path / "none.toml", {}, {})


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("KAFKAESQUE_SERVER_PROT", "1", "KAFKAESQUE_SERVER_PROT names no setting"),
        ("KAFKAESQUE_SERVER_PORT", "x", "KAFKAESQUE_SERVER_PORT must be a whole number"),
        ("KAFKAESQUE_SERVER_PORT", "-1", "KAFKAESQUE_SERVER_PORT must be from 0"),
        ("KAFKAESQUE_BROKER_AUTO_CREATE_TOPICS", "yes", "must be true or false"),
    ],
)
def test_an_invalid_variable_is_refused(variable: str, value: str, sentence: str) -> None:
    with pytest.raises(BadConfiguration, match=sentence):
        load(None, {variable: value}, {})


def test_variables_of_other_programs_are_ignored() -> None:
    assert load(None, {"KAFKAESQUE_BOOTSTRAP": "x", "HOME": "y"}, {}) == Settings()


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "raft.heartbeat_ticks",
            10,
            "raft.heartbeat_ticks .* raft.election_ticks, which is 10",
        ),
        ("raft.election_ticks", 2, "raft.heartbeat_ticks .* raft.election_ticks, which is 2"),
        (
            "fetch.session_partitions_max",
            200_000,
            "fetch.session_partitions_max .* fetch.sessions_partitions_max, which is 100000",
        ),
        (
            "groups.session_timeout_ms_min",
            1_800_001,
            "groups.session_timeout_ms_min .* groups.session_timeout_ms_max, which is 1800000",
        ),
        (
            "groups.consumer_heartbeat_ms",
            100,
            "groups.consumer_hasty_heartbeat_ms .* groups.consumer_heartbeat_ms, which is 100",
        ),
        (
            "groups.consumer_session_timeout_ms",
            1_000,
            "groups.consumer_heartbeat_ms .* groups.consumer_session_timeout_ms, which is 1000",
        ),
        (
            "groups.share_session_timeout_ms",
            1_000,
            "groups.share_heartbeat_ms .* groups.share_session_timeout_ms, which is 1000",
        ),
    ],
)
def test_contradictory_settings_are_refused(key: str, value: int, sentence: str) -> None:
    with pytest.raises(BadConfiguration, match=sentence):
        load(None, {KEYS[key].variable: str(value)}, {})


@pytest.mark.parametrize(
    ("key", "largest"),
    [
        ("log.segment_bytes_max", RELATIVE_MAX),
        ("log.internal_segment_bytes_max", RELATIVE_MAX),
        ("broker.partitions_default", PARTITIONS_MAX),
        ("groups.offsets_partitions", PARTITIONS_MAX),
        ("transactions.state_partitions", PARTITIONS_MAX),
    ],
)
def test_values_that_the_broker_cannot_handle_are_refused(key: str, largest: int) -> None:
    load(None, {KEYS[key].variable: str(largest)}, {})
    with pytest.raises(BadConfiguration, match=f"must be from 1 to {largest}, not {largest + 1}"):
        load(None, {KEYS[key].variable: str(largest + 1)}, {})


@pytest.mark.parametrize("value", [-HUGE, 0, 1, (1 << 31) - 1, 1 << 31, HUGE, HUGE + 1])
@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
def test_numbers_of_any_size_are_refused_with_a_message(key: Key, value: int) -> None:
    try:
        settings = load(None, {key.variable: str(value)}, {})
    except BadConfiguration as refused:
        assert any(name in str(refused) for name in (key.variable, key.field))
    else:
        assert settings != Settings() or value == key.default
