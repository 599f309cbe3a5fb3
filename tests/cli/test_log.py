"""`kafkaesque log dump`: what is on disk, and where it is damaged."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from kafkaesque.cli.main import run
from kafkaesque.config import LogConfig
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import RecoverySet
from kafkaesque.log.posix_disk import PosixDisk

GOLDEN = Path(__file__).parent.parent / "golden" / "format-1"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder of an earlier run, to be damaged."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "data"))


def dump(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, object]]:
    run(["log", "dump", str(path), "--json", *options])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def damages(lines: list[dict[str, object]]) -> list[tuple[str, object]]:
    found = [line for line in lines if line["kind"] == "damage"]
    return [(Path(str(line["file"])).name, line["position"]) for line in found]


def test_a_whole_folder_is_printed_and_nothing_is_changed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    lines = dump(data, capsys)
    assert run(["log", "dump", str(data)]) == 0
    assert {"group", "batch", "index"} == {line["kind"] for line in lines}
    assert before == {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}


def test_records_are_printed_on_request(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dump(data / "orders-0", capsys, "--records")
    offsets = [line["offset"] for line in lines if line["kind"] == "record"]
    counts = [line["records"] for line in lines if line["kind"] == "batch"]
    assert offsets == sorted(offsets)  # type: ignore[type-var]  # they are numbers
    assert len(offsets) == sum(int(str(count)) for count in counts) > 0


def test_a_flipped_bit_is_located(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data / "orders-0" / "00000000000000000000.log"
    second = [line["position"] for line in dump(path, capsys) if line["kind"] == "batch"][1]
    broken = bytearray(path.read_bytes())
    broken[int(str(second)) + 61] ^= 1
    path.write_bytes(broken)
    assert damages(dump(path, capsys)) == [(path.name, second)]
    assert run(["log", "dump", str(path)]) == 1
    assert capsys.readouterr().err == "kafkaesque: 1 damaged place\n"


def test_a_torn_tail_is_located(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data / "orders-0" / "00000000000000000006.log"
    last = [line["position"] for line in dump(path, capsys) if line["kind"] == "batch"][-1]
    path.write_bytes(path.read_bytes()[:-3])
    assert (path.name, last) in damages(dump(path, capsys))


def test_a_misleading_index_is_found(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data / "orders-0" / "00000000000000000000.index"
    path.write_bytes((1).to_bytes(4, "big") + (7).to_bytes(4, "big"))
    assert damages(dump(data / "orders-0", capsys)) == [(path.name, 0)]


def test_a_torn_time_index_is_found(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data / "orders-0" / "00000000000000000000.timeindex"
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0\0\0")
    assert damages(dump(data / "orders-0", capsys)) == [(path.name, len(whole))]


def test_a_damaged_journal_is_found(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data / "journal"
    path.write_bytes(path.read_bytes() + b"torn")
    size = len(path.read_bytes()) - 4
    assert damages(dump(path, capsys)) == [("journal", size)]
    path.write_bytes(b"x" * 40)
    assert damages(dump(path, capsys)) == [("journal", 0)]


def test_user_data_is_quoted(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["log", "dump", str(data / "orders-0"), "--records"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("record ")]
    assert all('value="' in line or "value={" in line or "value=null" in line for line in lines)


def test_a_missing_path_is_wrong_usage(tmp_path: Path) -> None:
    assert run(["log", "dump", str(tmp_path / "nothing")]) == 2


def test_an_unreadable_file_is_reported_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "00000000000000000000.log").symlink_to(tmp_path / "nowhere")
    assert run(["log", "dump", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("Error: cannot read ")
    assert err.endswith("No such file or directory\n")


def test_a_circular_link_is_not_followed_forever(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "orders-0" / "again").symlink_to(data / "orders-0")
    batches = [line for line in dump(data / "orders-0", capsys) if line["kind"] == "batch"]
    assert len({line["file"] for line in batches}) < 20


def test_a_replica_that_may_have_forgotten_is_trusted_once(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = PosixDisk(data)
    journal = Journal.open(disk, LogConfig())
    journal.add(RecoverySet(group="orders-0", is_recovering=True))
    journal.write_now()
    journal.close()
    disk.close()
    assert run(["log", "trust", str(data), "orders-0"]) == 0
    assert "orders-0: votes again" in capsys.readouterr().out
    groups = [line for line in dump(data, capsys) if line["kind"] == "group"]
    assert not any(group["recovering"] for group in groups)
    assert run(["log", "trust", str(data), "orders-0"]) == 1
    assert "needed no trust" in capsys.readouterr().out


def test_an_unusable_folder_is_reported_in_one_sentence(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("kafkaesque.log.posix_disk.make_durable_folder", refuse)
    assert run(["log", "trust", str(data), "orders-0"]) == 1
    assert capsys.readouterr().err == f"Error: cannot use {data}: Permission denied\n"


def test_a_folder_without_a_broker_cannot_be_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "trust", str(tmp_path), "orders-0"]) == 1
    assert "it is not a broker's data folder" in capsys.readouterr().err
