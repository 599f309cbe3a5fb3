"""What commands print: for people, for pipes, for programs."""

import json

import click
import pytest

from kafkaesque.cli.output import Output, Table, shown

TABLE = Table(kind="topic", columns=("topic", "in sync"), rows=[("a\tb", (1, 2)), ("c", None)])


def test_a_pipe_gets_tabs_and_no_head(capsys: pytest.CaptureFixture[str]) -> None:
    Output(is_json=False).table(TABLE)
    assert capsys.readouterr().out == "a\\tb\t1,2\nc\t-\n"


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    Output(is_json=True).table(TABLE)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"topic": "a\tb", "in_sync": [1, 2]}, {"topic": "c", "in_sync": None}]


def test_several_tables_in_a_pipe_say_of_which_kind_each_line_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output(is_json=False).tables({"name": "x"}, [TABLE])
    assert capsys.readouterr().out == "name\tx\ntopic\ta\\tb\t1,2\ntopic\tc\t-\n"


def test_a_terminal_gets_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    row = ("[red]orders[/red]", 12_345)
    Output(is_json=False).table(Table(kind="topic", columns=("topic", "records"), rows=[row]))
    printed = capsys.readouterr().out
    assert "1 topic" in printed
    assert "[red]orders[/red]" in printed, "names are not taken for commands to the table"
    assert "12,345" in printed


def test_a_table_of_brokers_fits_into_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    columns = ("broker", "address", "rack", "state", "leads", "replicas", "bytes", "free", "drains")
    row = (1, "10.20.30.40:19092", None, "down", 1_234, 12_345, 123_456_789_012, 5 << 40, False)
    quiet, sizes = ("rack", "drains"), ("bytes", "free")
    Output(is_json=False).table(
        Table(kind="broker", columns=columns, rows=[row], quiet=quiet, sizes=sizes)
    )
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert any(all(one in line for one in ("10.20.30.40:19092", "123.5 GB")) for line in lines)
    assert max(map(len, lines)) <= 80
    assert "rack" not in "".join(lines)


def test_a_terminal_is_told_that_there_is_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Output(is_json=False).table(Table(kind="group", columns=("group",), rows=[]))
    assert capsys.readouterr().out == "no groups\n"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (True, "yes"), ("\x1b[31m", "\\x1b[31m"), ([], ""), (5, "5")]
)
def test_values_are_shown_on_one_line_without_tricks(value: object, text: str) -> None:
    assert shown(value) == text
