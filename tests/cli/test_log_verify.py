"""`kafkaesque log verify` reads every partition of a data folder, and changes nothing."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.cli.main import run
from kafkaesque.testing import Broker

GOLDEN = Path(__file__).parent.parent / "golden"
SECONDS_MAX = 120


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a stopped broker with two topics of several segments."""
    data = tmp_path_factory.mktemp("made")
    with Broker(data) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        names = ("orders", "letters")
        topics = [NewTopic(name, 1, 1, config={"segment.bytes": "2048"}) for name in names]
        for created in admin.create_topics(topics).values():
            created.result(SECONDS_MAX)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1})
        for number in range(100):
            for name in names:
                producer.produce(name, b"%d" % number + b"." * 60)
        assert producer.flush(SECONDS_MAX) == 0
    yield data


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


def verify(
    data: Path, capsys: pytest.CaptureFixture[str], *groups: str
) -> tuple[int, dict[str, dict[str, object]]]:
    code = run(["log", "verify", str(data), "--json", *groups])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, {str(line["group"]): line for line in lines}


def partition(data: Path, topic: str) -> str:
    (folder,) = data.glob(f"{topic}.*/0")
    return str(folder.relative_to(data))


def test_a_whole_folder_is_read_and_nothing_is_changed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    code, found = verify(data, capsys)
    assert code == 0
    orders = found[partition(data, "orders")]
    names = list((data / partition(data, "orders")).glob("*.log"))
    sizes = [path.stat().st_size for path in names]
    assert (orders["segments"], orders["bytes"], orders["unsealed"]) == (len(names), sum(sizes), 0)
    assert all(one["damage"] == [] for one in found.values())
    assert before == {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["format-1", "format-2"])
def test_a_folder_of_an_earlier_version_without_seals_is_whole(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path(shutil.copytree(GOLDEN / name, tmp_path / "data"))
    code, found = verify(data, capsys)
    assert (code, [one["damage"] for one in found.values()]) == (0, [[] for _ in found])
    assert found


def test_damage_is_reported_with_file_byte_and_offset(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = partition(data, "orders")
    segment = sorted((data / group).glob("*.log"))[1]
    content = bytearray(segment.read_bytes())
    content[70] ^= 1
    segment.write_bytes(content)
    code, found = verify(data, capsys)
    assert code == 1
    assert found[group]["damage"] == [
        {
            "file": str(segment),
            "position": 0,
            "offset": int(segment.stem),
            "reason": "the batch has a wrong checksum",
        }
    ]
    assert found[partition(data, "letters")]["damage"] == []
    assert verify(data, capsys, partition(data, "letters"))[0] == 0, "only the requested partition"
    assert run(["log", "verify", str(data)]) == 1
    assert f"{group}: DAMAGED" in capsys.readouterr().out


def test_a_missing_segment_is_reported_from_the_seals_alone(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = partition(data, "orders")
    segment = sorted((data / group).glob("*.log"))[1]
    for suffix in (".log", ".index", ".timeindex"):
        segment.with_suffix(suffix).unlink(missing_ok=True)
    code, found = verify(data, capsys)
    assert code == 1
    damage = found[group]["damage"]
    assert isinstance(damage, list)
    assert [(one["file"], one["reason"]) for one in damage] == [
        (str(segment), "the file is missing")
    ]


def test_damage_before_the_synced_point_of_the_last_segment_is_reported(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = partition(data, "orders")
    segment = sorted((data / group).glob("*.log"))[-1]
    content = bytearray(segment.read_bytes())
    content[7] ^= 1
    segment.write_bytes(content)
    assert verify(data, capsys, group)[0] == 1


def test_damaged_seals_are_reported(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = partition(data, "orders")
    seals = data / group / "seals"
    content = bytearray(seals.read_bytes())
    content[20] ^= 1
    seals.write_bytes(content)
    code, found = verify(data, capsys, group)
    assert code == 1
    assert found[group]["unsealed"] == found[group]["segments"] - 1  # type: ignore[operator]


def test_a_missing_partition_is_reported_in_one_sentence(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "verify", str(data), "nobody/0"]) == 1
    assert f"{data} holds no nobody/0" in capsys.readouterr().err


def test_a_folder_without_a_broker_is_reported_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "verify", str(tmp_path)]) == 1
    assert "cannot read" in capsys.readouterr().err
