"""`kafkaesque backup` and `kafkaesque restore`, as users and scripts see them."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.backup.watch import Watch
from kafkaesque.cli.backup import Lines
from kafkaesque.cli.backup_bar import Bar
from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Broker
from tests.backup.clusters import contents, put, some_records

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        for name in ("letters", "orders"):
            admin.topics.create(name, partitions=2)
            put(admin, name, 0, some_records(10))
        admin.groups.commit("g", {("orders", 0): 4})
        yield broker


def backup(broker: Broker, folder: Path, *words: str) -> int:
    return run(["backup", str(folder), "--bootstrap", broker.bootstrap, *words])


def restore(broker: Broker, folder: Path, *words: str) -> int:
    return run(["restore", str(folder), "--bootstrap", broker.bootstrap, *words])


def test_each_topic_is_a_line_and_the_last_line_sums_up(
    source: Broker, tmp_path: Path, capsys: Captured
) -> None:
    assert backup(source, tmp_path / "b") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[:2] for line in lines[:2]] == [["letters", "10"], ["orders", "10"]]
    assert lines[2].startswith("saved: 2 topics, 20 records")
    assert lines[2].endswith("1 group")


def test_json_output_is_one_object(source: Broker, tmp_path: Path, capsys: Captured) -> None:
    assert backup(source, tmp_path / "b", "--json", "--topic", "orders") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["topics"][0]["topic"] == "orders"
    assert said["topics"][0]["records"] == 10
    assert said["groups"] == [{"group": "g"}]
    with Broker() as target:
        assert restore(target, tmp_path / "b", "--json") == 0
        said = json.loads(capsys.readouterr().out)
        assert said["topics"][0]["topic"] == "orders"
        assert contents(target.bootstrap, "orders") == contents(source.bootstrap, "orders")


def test_an_existing_topic_is_refused_in_one_sentence(
    source: Broker, tmp_path: Path, capsys: Captured
) -> None:
    assert backup(source, tmp_path / "b") == 0
    assert restore(source, tmp_path / "b") == 1
    said = capsys.readouterr().err
    assert said.startswith("kafkaesque: topic letters exists and is not empty")
    assert restore(source, tmp_path / "b", "--into", "x-", "--rename", "orders=y") == 0
    assert contents(source.bootstrap, "y") == contents(source.bootstrap, "orders")


def test_a_check_names_the_damaged_file_and_its_byte(
    source: Broker, tmp_path: Path, capsys: Captured
) -> None:
    assert backup(source, tmp_path / "b") == 0
    assert run(["backup", str(tmp_path / "b"), "--check"]) == 0
    assert ", 0 damaged" in capsys.readouterr().out
    chunk = min((tmp_path / "b").rglob("*.batches"))
    chunk.write_bytes(chunk.read_bytes()[:-3])
    assert run(["backup", str(tmp_path / "b"), "--check"]) == 1
    assert f"{chunk} is damaged at byte " in capsys.readouterr().err
    assert run(["backup", str(tmp_path / "b"), "--check", "--json"]) == 1
    (damage,) = json.loads(capsys.readouterr().out)["damages"]
    assert damage["file"] == str(chunk)


def test_wrong_usage_is_exit_code_2(source: Broker, tmp_path: Path, capsys: Captured) -> None:
    assert run(["backup", str(tmp_path), "--check", "--topic", "x"]) == 2
    assert restore(source, tmp_path / "nowhere") == 2
    assert restore(source, tmp_path, "--rename", "x") == 2


def test_an_unreachable_broker_is_reported(tmp_path: Path, capsys: Captured) -> None:
    assert run(["backup", str(tmp_path / "b"), "--bootstrap", "127.0.0.1:1"]) == 1
    assert "cannot reach a broker" in capsys.readouterr().err


def test_ctrl_c_leaves_a_backup_that_can_be_continued_and_says_so(
    source: Broker, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: Watch, topic: str, *, records: int, size: int) -> None:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(Lines, "topic_done", stop)
        assert backup(source, tmp_path / "b") == 130
    assert "run the same command to resume" in capsys.readouterr().err
    assert backup(source, tmp_path / "b") == 0
    assert run(["backup", str(tmp_path / "b"), "--check"]) == 0


def test_the_bar_counts_partitions_and_bytes() -> None:
    with Bar() as bar:
        bar.begins(partitions=2, total=10)
        bar.moved(amount=5, size=3_000_000)
        bar.partition_done(("t", 0))
        assert bar._text().startswith("1 of 2 partitions, 3.0 MB, ")
        bar.note("said")
