"""`kafkaesque log repair` rebuilds the journal of a lone broker, and nothing is lost."""

import json

import pytest

from kafkaesque.cli.main import run
from kafkaesque.testing.process import BrokerProcess
from tests.cli.test_log_repair import COUNT, read_all, stopped

__all__ = ["stopped"]


def repair(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["log", "repair", "--data", str(broker.data), *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_lost_journal_is_rebuilt_from_the_segments(
    stopped: BrokerProcess, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    assert repair(stopped, capsys)[0] == 0
    journal = stopped.data / "journal"
    if how == "missing":
        journal.unlink()
    else:
        journal.write_bytes(b"\0" * journal.stat().st_size)
    assert run(["serve", "--port", "0", "--data", str(stopped.data)]) != 0
    assert "kafkaesque log repair --data" in capsys.readouterr().err
    code, out, err = repair(stopped, capsys, "--json")
    logs = {one["partition"].partition(".")[0]: one for one in map(json.loads, out.splitlines())}
    assert code == 1 and "nothing was changed" in err
    assert logs["orders"]["end"] == COUNT and logs["orders"]["unreadable_bytes"] == 0
    assert journal.exists() == (how == "damaged")
    code, out, _ = repair(stopped, capsys, "--yes")
    assert code == 0 and "continue in term" in out
    assert repair(stopped, capsys, "--yes")[0] == 0
    assert len(list(stopped.data.glob("journal.*.damaged"))) == (how == "damaged")
    stopped.start()
    assert read_all(stopped, COUNT - 1) == list(range(COUNT))


def test_a_partition_must_be_named_completely(
    stopped: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = repair(stopped, capsys, "orders")
    assert code == 2 and "give PARTITION too" in err
