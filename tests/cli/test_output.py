"""What commands print: for terminals, for pipes, for programs."""

import json
from dataclasses import replace

import click
import pytest

from kafkaesque.cli.cluster_admin import _brokers
from kafkaesque.cli.output import Output, Table, shown
from kafkaesque.client.address import Address
from kafkaesque.client.brokers import BrokerInfo, FolderInfo
from kafkaesque.client.overview import Overview
from kafkaesque.client.topics import PartitionInfo, TopicInfo

TABLE = Table(kind="topic", columns=("topic", "in sync"), rows=[("a\tb", (1, 2)), ("c", None)])


def a_cluster(host: str, port: int) -> Overview:
    """Two brokers of which one is down, drained and damaged."""
    folder = FolderInfo(
        total_bytes=9 << 40, free_bytes=5_500_000_000_000, sizes={("orders", 0): 123_456_789_012}
    )
    brokers = [
        BrokerInfo(
            node=node,
            address=Address(host=host, port=port + node - 1),
            rack=f"eu-west-1{'ab'[node - 1]}",
            is_there=node == 1,
            is_draining=node == 2,
        )
        for node in (1, 2)
    ]
    orders = TopicInfo(
        name="orders",
        topic_id=b"t" * 16,
        is_internal=False,
        partitions=(PartitionInfo(index=0, leader=1, replicas=(1,), in_sync=(1,)),),
    )
    return Overview(
        brokers=tuple(brokers),
        quorum=None,
        topics=(orders,),
        folders={1: folder, 2: replace(folder, damaged=(("orders", 0),))},
    )


def test_a_pipe_gets_tabs_and_no_header(capsys: pytest.CaptureFixture[str]) -> None:
    Output(is_json=False).table(TABLE)
    assert capsys.readouterr().out == "a\\tb\t1,2\nc\t-\n"


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    Output(is_json=True).table(TABLE)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"topic": "a\tb", "in_sync": [1, 2]}, {"topic": "c", "in_sync": None}]


def test_several_tables_in_a_pipe_have_the_table_name_on_each_line(
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
    assert "[red]orders[/red]" in printed, "names are not interpreted as markup"
    assert "12,345" in printed


def test_a_table_of_brokers_fits_into_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    Output(is_json=False).table(_brokers(a_cluster("10.20.30.40", 19092)))
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    head, _, *rows = (" ".join(line.split()) for line in lines[1:] if line.strip())
    assert head == "id address rack state leads holds bytes free drains bad"
    assert rows[0] == "1 10.20.30.40:19092 eu-west-1a up 1 1 123.5 GB 5.5 TB no 0"
    assert rows[1] == "2 10.20.30.40:19093 eu-west-1b down 0 0 123.5 GB 5.5 TB yes 1"


def test_an_address_is_never_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    host = "kafka-2.eu-west.internal"
    Output(is_json=False).table(_brokers(a_cluster(host, 9092)))
    printed = click.unstyle(capsys.readouterr().out)
    assert f"{host}:9092" in printed
    assert f"{host}:9093" in printed


def test_a_column_without_values_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    seen = a_cluster("here", 9092)
    one = replace(seen.brokers[0], rack="")
    Output(is_json=False).table(_brokers(replace(seen, brokers=(one,))))
    printed = click.unstyle(capsys.readouterr().out)
    assert "rack" not in printed
    assert "drains" not in printed
    assert "bad" not in printed


def test_an_empty_table_is_announced_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Output(is_json=False).table(Table(kind="group", columns=("group",), rows=[]))
    assert capsys.readouterr().out == "no groups\n"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (True, "yes"), ("\x1b[31m", "\\x1b[31m"), ([], ""), (5, "5")]
)
def test_values_are_escaped_and_shown_on_one_line(value: object, text: str) -> None:
    assert shown(value) == text
