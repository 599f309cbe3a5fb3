"""A broker stops, or runs out of room, while clients write: nothing acknowledged is lost."""

import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaesque.wire.messages.produce import ProduceRequest
from tests.fuzz.victim import Victim
from tests.fuzz.witness import Witness, ask
from tests.hostile.peers import Hostile, a_batch
from tests.server.running import a_produce, request

WRITERS = 4
ACKNOWLEDGED_MIN = 200
ROOM = "8m"
MORE_ROOM = "64m"
BATCH_RECORDS = 5_000


class Load:
    """Writers that record their acknowledged values, until their broker is gone."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.acknowledged: list[bytes] = []
        self.is_enough = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(20)

    def _write(self, writer: int) -> None:
        number = 0
        try:
            with socket.create_connection(("127.0.0.1", self._port), 10) as sock:
                while True:  # ends when the broker disconnects
                    number += 1
                    value = f"{writer}/{number}".encode()
                    answer = ask(sock, a_produce("load", value), ProduceRequest, 9)
                    code = answer.responses[0].partition_responses[0].error_code
                    if code == ErrorCode.NONE:
                        self.acknowledged.append(value)
                    if len(self.acknowledged) >= ACKNOWLEDGED_MIN:
                        self.is_enough.set()
        except (OSError, struct.error):
            pass  # it was stopped


def test_a_clean_stop_under_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        Witness(victim.port).make_topic("load", {"retention.ms": "-1"})
        load = Load(victim.port)
        assert load.is_enough.wait(20)
    load.join()
    with Victim(tmp_path) as victim:
        found = set(_values(Hostile(victim), "load"))
        assert victim.trouble() is None
    assert set(load.acknowledged) <= found


def test_without_room_writes_are_refused_reads_continue_and_writes_resume(small: Path) -> None:
    with Victim(small) as victim:
        Witness(victim.port).make_topics()
        hostile = Hostile(victim)
        kept = 0
        code = ErrorCode.NONE
        while code == ErrorCode.NONE:  # ends: the disk is small
            code = ErrorCode(hostile.produce(_large(), "plain", timeout_ms=500))
            kept += code == ErrorCode.NONE
        assert code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)
        assert len(list(_values(hostile, "plain"))) >= kept * BATCH_RECORDS
        subprocess.run(["mount", "-o", f"remount,size={MORE_ROOM}", str(small)], check=True)
        while code != ErrorCode.NONE:  # ends: the broker checks for room now and then
            code = ErrorCode(hostile.produce(_large(), "plain", timeout_ms=500))
        complaints = re.findall(r"^\S+ \S+ (?:WARNING|ERROR) (.*)$", victim.said(), re.MULTILINE)
        assert all(one.startswith("disk_full folder=") for one in complaints)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system with hardly any room."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("a file system can be mounted by the administrator only")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _large() -> bytes:
    return bytes(a_batch(count=BATCH_RECORDS, timestamp_ms=2**62))


def _values(hostile: Hostile, topic: str) -> Iterator[bytes | None]:
    offset = 0
    with hostile.connect() as sock:
        while True:  # ends at the end of the log
            wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=4 << 20)
            message = FetchRequest(
                max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=topic, partitions=(wanted,)),)
            )
            answer = ask(sock, request(message, 11), FetchRequest, 11)
            batches = list(split_batches(answer.responses[0].partitions[0].records or b""))
            if not batches:
                return
            for batch in batches:
                yield from (record.value for record in read_records(batch))
            offset = batches[-1].end_offset
