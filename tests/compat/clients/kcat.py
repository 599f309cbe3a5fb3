"""kcat, the usual command-line tool for debugging; it contains an older librdkafka."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from tests.compat.clients.client import SECONDS_MAX, Does, Member, Seen, Sent

PROGRAM = shutil.which("kcat")


class _Producer:
    def __init__(self, bootstrap: str, codec: str) -> None:
        self._bootstrap = bootstrap
        self._codec = codec

    def send(self, topic: str, records: Sequence[Sent]) -> None:
        headers = {f"{name}={value.decode()}" for one in records for name, value in one.headers}
        lines = [b"%b\t%b" % (one.key or b"", one.value) for one in records]
        arguments = ["-P", "-p", "0", "-K", "\t", "-z", self._codec]
        for header in headers:
            arguments += ["-H", header]
        _run(self._bootstrap, topic, arguments, b"\n".join(lines) + b"\n")

    def close(self) -> None:
        """There is nothing to close."""


class Kcat:
    """A program and not a library: it cannot do everything that the others can."""

    name = "kcat"
    does = frozenset({Does.PRODUCE, Does.BIG, Does.TIME})

    def producer(self, bootstrap: str, *, codec: str, is_idempotent: bool) -> _Producer:
        """Return a producer that runs kcat once per call."""
        assert not is_idempotent
        return _Producer(bootstrap, codec)

    def read(
        self, bootstrap: str, topic: str, *, count: int, from_ms: int | None = None
    ) -> list[Seen]:
        """Read from partition 0."""
        start = "beginning" if from_ms is None else f"s@{from_ms}"
        arguments = ["-C", "-p", "0", "-o", start, "-c", str(count), "-e", "-q", "-J"]
        rows = [json.loads(line) for line in _run(bootstrap, topic, arguments).splitlines()]
        return [
            Seen(
                partition=row["partition"],
                offset=row["offset"],
                timestamp_ms=row["ts"],
                key=None if row["key"] is None else row["key"].encode(),
                value=None if row["payload"] is None else row["payload"].encode(),
                headers=_pairs(row.get("headers", [])),
            )
            for row in rows
        ]

    def join(self, bootstrap: str, topic: str, group: str) -> Member:
        """Not supported."""
        raise NotImplementedError

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, settings: Mapping[str, str]
    ) -> None:
        """Not supported."""
        raise NotImplementedError

    def settings(self, bootstrap: str, topic: str) -> dict[str, str]:
        """Not supported."""
        raise NotImplementedError

    def change_setting(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        """Not supported."""
        raise NotImplementedError

    def add_partitions(self, bootstrap: str, topic: str, partitions: int) -> None:
        """Not supported."""
        raise NotImplementedError

    def topics(self, bootstrap: str) -> set[str]:
        """Not supported."""
        raise NotImplementedError

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """Not supported."""
        raise NotImplementedError


def _pairs(flat: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
    return tuple((flat[i], flat[i + 1].encode()) for i in range(0, len(flat), 2))


def _run(bootstrap: str, topic: str, arguments: Sequence[str], given: bytes = b"") -> bytes:
    assert PROGRAM is not None, "kcat is not installed"
    done = subprocess.run(
        [PROGRAM, "-b", bootstrap, "-t", topic, *arguments],
        input=given,
        capture_output=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
