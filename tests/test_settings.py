"""Settings: where they come from, which wins, and what is refused."""

from pathlib import Path

import pytest

from kafkaesque.coordinator_config import MigrationPolicy
from kafkaesque.errors import BadConfiguration
from kafkaesque.settings import KEYS, Settings, load


def a_file(folder: Path, text: str) -> Path:
    path = folder / "kafkaesque.toml"
    path.write_text(text)
    return path


def test_nothing_set_is_the_defaults() -> None:
    assert load(None, {}, {}) == Settings()


def test_flags_win_over_variables_over_the_file_over_defaults(tmp_path: Path) -> None:
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


def test_a_choice_can_be_set_in_both_ways_and_nothing_else_is_taken(tmp_path: Path) -> None:
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


def test_every_key_has_a_variable_of_its_own() -> None:
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[serve]\n", "has 'serve'"),
        ("port = 1\n", "has 'port'"),
        ("[server]\nprot = 1\n", "sets server.prot, which does not exist"),
        ('[server]\nport = "1"\n', "server.port in .* is a whole number"),
        ("[server]\nport = true\n", "server.port in .* is a whole number"),
        ("[server]\nport = 70000\n", "server.port in .* is from 0 to 65535"),
        ("[broker]\nauto_create_topics = 1\n", "is true or false"),
        ("[limits]\nconnections_max = 0\n", "limits.connections_max in .* is from 1"),
        ("[raft]\nheartbeat_ticks = 10\n", "must be smaller than raft.election_ticks"),
        ("[server\n", "is not TOML"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(BadConfiguration, match=sentence):
        load(a_file(tmp_path, text), {}, {})


def test_a_file_that_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="cannot read"):
        load(tmp_path / "none.toml", {}, {})


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("KAFKAESQUE_SERVER_PROT", "1", "KAFKAESQUE_SERVER_PROT sets nothing"),
        ("KAFKAESQUE_SERVER_PORT", "x", "KAFKAESQUE_SERVER_PORT is a whole number"),
        ("KAFKAESQUE_SERVER_PORT", "-1", "KAFKAESQUE_SERVER_PORT is from 0"),
        ("KAFKAESQUE_BROKER_AUTO_CREATE_TOPICS", "yes", "is true or false"),
    ],
)
def test_a_variable_that_makes_no_sense_is_refused(
    variable: str, value: str, sentence: str
) -> None:
    with pytest.raises(BadConfiguration, match=sentence):
        load(None, {variable: value}, {})


def test_variables_of_other_programs_are_left_alone() -> None:
    assert load(None, {"KAFKAESQUE_BOOTSTRAP": "x", "HOME": "y"}, {}) == Settings()
