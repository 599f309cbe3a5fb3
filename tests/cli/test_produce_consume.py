"""`kafkaesque produce` and `consume` through real pipes, against a real broker."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkaesque.cli.main import cli, run
from kafkaesque.cli.output import counted
from kafkaesque.cli.produce import flush
from kafkaesque.client.admin import Admin
from kafkaesque.testing.process import BrokerProcess
from kafkaesque.wire.messages.join_group import JoinGroupRequest

pytestmark = pytest.mark.compat

SECONDS_MAX = 120
KAFKAESQUE = (sys.executable, "-m", "kafkaesque")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker") / "data")
    process.start()
    yield process
    process.kill()


def a_topic(broker: BrokerProcess, name: str, partitions: int = 1) -> str:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(name, partitions=partitions)
    return name


def call(
    broker: BrokerProcess, *words: str, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a command with this input."""
    return subprocess.run(
        [*KAFKAESQUE, *words, "--bootstrap", broker.bootstrap],
        input=given,
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def read(broker: BrokerProcess, topic: str, *options: str) -> bytes:
    """Return everything that `consume` prints up to the end."""
    words = ("consume", topic, "--from", "beginning", "--no-follow", *options)
    done = call(broker, *words)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_are_read_back_as_they_were_sent(broker: BrokerProcess, codec: str) -> None:
    topic = a_topic(broker, f"lines-{codec}")
    lines = b"one\n\n  two \xff\nthree"
    done = call(broker, "produce", topic, "--compression", codec, given=lines)
    assert done.returncode == 0
    assert done.stdout == b"acknowledged: 4, failed: 0, unknown: 0\n"
    assert read(broker, topic) == lines + b"\n"


def test_a_terminal_shows_the_progress_of_a_file(
    broker: BrokerProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    file = tmp_path / "lines"
    file.write_bytes(b"a line\n" * 3)
    words = ["produce", a_topic(broker, "shown"), "--file", str(file)]
    assert run([*words, "--bootstrap", broker.bootstrap]) == 0
    assert "3 of 3 records acknowledged" in capsys.readouterr().err


class SlowProducer:
    """librdkafka's producer with a queue that empties slowly."""

    def __init__(self, left: int) -> None:
        self.left = left

    def flush(self, seconds: float) -> int:
        assert seconds <= 1, "nothing would be shown meanwhile"
        self.left -= 1
        return self.left


def test_progress_is_shown_while_the_last_records_are_waited_for() -> None:
    shown: list[int] = []
    producer: Any = SlowProducer(4)
    flush(producer, 60, lambda: shown.append(producer.left))
    assert shown == [3, 2, 1, 0]


def test_waiting_for_the_last_records_times_out() -> None:
    shown: list[int] = []
    producer: Any = SlowProducer(1_000)
    flush(producer, 1, lambda: shown.append(producer.left))
    assert len(shown) == 6


def test_keys_and_headers_are_sent_with_the_records(broker: BrokerProcess) -> None:
    topic = a_topic(broker, "keys")
    words = ("produce", topic, "--key-separator", "=", "--header", "a=1", "--header", "a=2")
    assert call(broker, *words, given=b"k=v=w\n").returncode == 0
    assert read(broker, topic, "--key-separator", "->") == b"k->v=w\n"
    record = json.loads(read(broker, topic, "--json"))
    assert record["headers"] == [["a", "1"], ["a", "2"]]
    assert (record["topic"], record["partition"], record["offset"]) == (topic, 0, 0)


def test_a_topic_is_copied_through_a_pipe_without_a_loss(broker: BrokerProcess) -> None:
    first, second = a_topic(broker, "first", 2), a_topic(broker, "second", 2)
    records = [
        {"key": "k", "value": None, "timestamp_ms": 1_000},
        {"key": {"base64": "//8="}, "value": "", "headers": {"h": "x", "n": None}},
        {"value": "ünïcode\n", "timestamp_ms": 5},
    ]
    given = "\n".join(json.dumps(one) for one in records).encode()
    assert call(broker, "produce", first, "--format", "json", given=given).returncode == 0
    copied = read(broker, first, "--format", "json")
    assert call(broker, "produce", second, "--format", "json", given=copied).returncode == 0

    def content(lines: bytes) -> list[str]:
        found = [json.loads(line) for line in lines.splitlines()]
        kept = ("key", "value", "headers", "timestamp_ms")
        return sorted(json.dumps([one[name] for name in kept]) for one in found)

    assert content(read(broker, second, "--json")) == content(copied)
    assert len(content(copied)) == 3


def test_a_partition_and_an_offset_can_be_selected(broker: BrokerProcess) -> None:
    topic = a_topic(broker, "chosen", 3)
    given = b"".join(b"%d\n" % number for number in range(10))
    assert call(broker, "produce", topic, "--partition", "2", given=given).returncode == 0
    done = call(broker, "consume", topic, "--from", "7", "--partition", "2", "--no-follow")
    assert done.stdout == b"7\n8\n9\n"
    assert read(broker, topic, "--partition", "0") == b""
    assert read(broker, topic, "--count", "3") == b"0\n1\n2\n"
    assert call(broker, "consume", topic, "--partition", "3").returncode == 1


def test_records_are_found_by_time(broker: BrokerProcess) -> None:
    topic = a_topic(broker, "timed")
    given = b"".join(b'{"value":"%d","timestamp_ms":%d000}\n' % (n, n) for n in range(1, 6))
    assert call(broker, "produce", topic, "--format", "json", given=given).returncode == 0
    done = call(broker, "consume", topic, "--from", "1970-01-01T00:00:04Z", "--no-follow")
    assert done.stdout == b"4\n5\n"
    assert call(broker, "consume", topic, "--from", "1 hour ago", "--no-follow").stdout == b""


def test_a_group_continues_after_the_printed_records(broker: BrokerProcess) -> None:
    with Admin(broker.bootstrap) as admin:
        if not admin.serves(JoinGroupRequest):
            pytest.skip("the broker does not serve groups")
    topic = a_topic(broker, "grouped")
    call(broker, "produce", topic, given=b"".join(b"%d\n" % n for n in range(10)))
    words = ("consume", topic, "--group", "readers")
    first = call(broker, *words, "--from", "beginning", "--count", "3")
    assert first.stdout == b"0\n1\n2\n"
    assert call(broker, *words, "--count", "2").stdout == b"3\n4\n"
    said = json.loads(call(broker, "group", "describe", "readers", "--json").stdout)
    assert [(row["committed"], row["lag"]) for row in said["partitions"]] == [(5, 5)]
    assert call(broker, "group", "reset", "readers", "--to", "-4", "--yes").returncode == 0
    rest = call(broker, *words, "--no-follow")
    assert rest.stdout == b"".join(b"%d\n" % n for n in range(1, 10))


def test_an_invalid_line_stops_it_and_the_ones_before_are_counted(
    broker: BrokerProcess,
) -> None:
    topic = a_topic(broker, "stopped")
    done = call(broker, "produce", topic, "--format", "json", given=b'{"value":"a"}\nnonsense\n')
    assert done.returncode == 1
    assert b"is not JSON" in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout == b"acknowledged: 1, failed: 0, unknown: 0\n"


def test_a_line_that_is_too_long_stops_it_and_the_ones_before_are_counted(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = a_topic(broker, "long")
    monkeypatch.setattr("kafkaesque.cli.produce.LINE_BYTES_MAX", 2_000)
    words = ["produce", topic, "--bootstrap", broker.bootstrap]
    done = CliRunner().invoke(cli, words, input=b"a\n" + b"x" * 2_001, standalone_mode=False)
    assert done.return_value == 1
    assert done.stderr == "kafkaesque: a line is longer than 2000 bytes\n"
    assert done.stdout == "acknowledged: 1, failed: 0, unknown: 0\n"


def test_a_record_larger_than_the_topics_limit_fails(broker: BrokerProcess) -> None:
    topic = a_topic(broker, "small")
    done = call(broker, "produce", topic, "--json", given=b"x" * 2_000_000 + b"\nok\n")
    said = json.loads(done.stdout)
    assert done.returncode == 1
    assert said["failed"] >= 1
    count = counted(said["failed"], "record")
    assert done.stderr.decode().startswith(f"kafkaesque: {count}: ")
    assert said["unknown"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_following_ends_cleanly_on_a_signal(broker: BrokerProcess, number: signal.Signals) -> None:
    topic = a_topic(broker, f"followed-{number.name}")
    call(broker, "produce", topic, given=b"one\n")
    words = ("consume", topic, "--from", "beginning", "--bootstrap", broker.bootstrap)
    with subprocess.Popen(
        [*KAFKAESQUE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        call(broker, "produce", topic, given=b"two\n")
        assert process.stdout.readline() == b"two\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS_MAX)
        assert (process.returncode, out, err) == (0, b"", b"")


def test_a_closed_output_pipe_ends_it_quietly(broker: BrokerProcess) -> None:
    topic = a_topic(broker, "enough")
    call(broker, "produce", topic, given=b"line\n" * 50_000)
    words = ("consume", topic, "--from", "beginning", "--no-follow")
    with subprocess.Popen(
        [*KAFKAESQUE, *words, "--bootstrap", broker.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(SECONDS_MAX) == 0


def test_a_broker_that_dies_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    topic = a_topic(broker, "dies")
    words = ("produce", topic, "--json", "--timeout", "2", "--bootstrap", broker.bootstrap)
    with subprocess.Popen(
        [*KAFKAESQUE, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        with Admin(broker.bootstrap) as admin:
            while not admin.batches.fetch(topic, 0, 0, wait_ms=1_000).batches:
                assert process.poll() is None
        broker.kill()
        out, err = process.communicate(b"two\n", timeout=SECONDS_MAX)
    assert process.returncode == 3
    said = json.loads(out)
    # The first was written; whether its answer arrived before the end is a matter of microseconds.
    assert (said["acknowledged"], said["unknown"]) in ((1, 1), (0, 2))
    assert b"Traceback" not in err


def test_a_missing_topic_is_reported_in_one_sentence(broker: BrokerProcess) -> None:
    done = call(broker, "consume", "nosuch", "--no-follow")
    assert done.returncode == 1
    assert done.stderr == b"kafkaesque: topic nosuch: there is no such topic or partition\n"


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_an_unreachable_broker_is_reported_in_one_sentence(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    done = subprocess.run(
        [*KAFKAESQUE, command, "orders", "--bootstrap", address],
        input=b"x\n",
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 1
    sentence = f"kafkaesque: cannot reach a broker at {address}: Connection refused\n"
    assert done.stderr.decode() == sentence


@pytest.mark.parametrize(
    "words",
    [
        ("produce", "t", "--key", "a", "--key-separator", ":"),
        ("produce", "t", "--key-separator", ""),
        ("produce", "t", "--format", "json", "--key-separator", ":"),
        ("consume", "t", "--group", "g", "--from", "5"),
        ("consume", "t", "--group", "g", "--partition", "0"),
        ("consume", "t", "--from", "sometime"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    broker: BrokerProcess, words: tuple[str, ...]
) -> None:
    assert call(broker, *words).returncode == 2
