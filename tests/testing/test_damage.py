"""Files of real brokers are damaged in all the usual ways: no record is lost silently.

The brokers are stopped meanwhile. `docs/reference/damage.md` is the table; `log/test_seals.py`
and `broker/test_damage.py` test its cells one by one on a simulated disk.
"""

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.cli.main import run
from kafkaesque.record.view import split_batches
from kafkaesque.testing import Broker, Cluster
from tests.complaints import WITHOUT_LEADERS

SECONDS_MAX = 60
COUNT = 120
SETTINGS = {"segment.bytes": "2048"}
Harm = Callable[[Path], None]


def _delete(segment: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        segment.with_suffix(suffix).unlink(missing_ok=True)


def _cut_out(segment: Path) -> None:
    data = segment.read_bytes()
    first, second, *_ = split_batches(data)
    segment.write_bytes(data[: first.size] + data[first.size + second.size :])


def _flip(place: int) -> Harm:
    """Flip a bit of the second batch."""

    def flip(segment: Path) -> None:
        data = bytearray(segment.read_bytes())
        data[next(split_batches(bytes(data))).size + place] ^= 2
        segment.write_bytes(data)

    return flip


def _truncate(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-10])


def _old_copy(segment: Path) -> None:
    """Restore the file as it was with half of its batches."""
    data = segment.read_bytes()
    views = list(split_batches(data))
    segment.write_bytes(data[: sum(view.size for view in views[: len(views) // 2])])


def _foreign(segment: Path) -> None:
    others = sorted(segment.parent.glob("*.log"))
    shutil.copy(others[0], segment)


def _zero(segment: Path) -> None:
    data = segment.read_bytes()
    segment.write_bytes(data[:300] + bytes(len(data) - 300))


HARMS: dict[str, Harm] = {
    "deleted": _delete,
    "cut-out": _cut_out,
    "base-offset": _flip(7),
    "high-base-offset": _flip(2),
    "magic": _flip(16),
    "records": _flip(70),
    "truncated": _truncate,
    "old-copy": _old_copy,
    "foreign": _foreign,
    "zeroed": _zero,
}


def create(bootstrap: str, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(list(topics)).values():
        created.result(SECONDS_MAX)


def produce(bootstrap: str, topics: list[str]) -> None:
    """Send COUNT batches of one record to each topic, enough for several segments."""
    settings = {"bootstrap.servers": bootstrap, "acks": "all", "batch.num.messages": 1}
    producer = Producer(settings)
    failures: list[object] = []
    for number in range(COUNT):
        for topic in topics:
            producer.produce(
                topic,
                b"%d" % number + b"." * 60,
                partition=0,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
    assert (producer.flush(SECONDS_MAX), failures) == (0, [])


def read(bootstrap: str, topic: str, first: int, count: int) -> list[int]:
    """Read like a consumer that starts over when its offset is out of range."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, first)])
    found: list[int] = []
    until = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < until:
        for message in consumer.consume(count - len(found), 1.0):
            if message.error() is None:
                value = message.value()
                assert value is not None
                assert int(value.rstrip(b".")) == message.offset(), "each at its old offset"
                found.append(int(message.offset() or 0))
    consumer.close()
    return found


def victim_of(data: Path, topic: str) -> tuple[Path, int]:
    """A closed segment in the middle of a topic's only partition, and the start of the next."""
    (folder,) = data.glob(f"{topic}.*/0")
    segments = sorted(folder.glob("*.log"))
    assert len(segments) >= 5
    return segments[2], int(segments[3].stem)


def await_noted(said: Callable[[], str], topics: list[str], event: str = "damage_found") -> None:
    """Return when the broker has logged damage in each of these; by then it has noted it."""
    until = time.monotonic() + SECONDS_MAX
    while True:
        found = set(re.findall(rf"{event} partition=([\w-]+)\.", said()))
        if found >= set(topics):
            return
        assert time.monotonic() < until, f"no {event}: {sorted(set(topics) - found)}"
        time.sleep(0.1)


@pytest.mark.complains(
    "damage_found partition=*",
    "problem kind=damaged: the only copy of *: reads of lost records fail, *",
)
def test_the_only_broker_notices_all_damage_and_serves_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(tmp_path) as broker:
        create(broker.bootstrap, *(NewTopic(one, 1, 1, config=SETTINGS) for one in HARMS))
        produce(broker.bootstrap, list(HARMS))
        assert run(["log", "verify", str(tmp_path)]) == 0, "also while it runs"
        broker.stop()
        assert run(["log", "verify", str(tmp_path)]) == 0
        capsys.readouterr()
        behind = {}
        for topic, harm in HARMS.items():
            segment, behind[topic] = victim_of(tmp_path, topic)
            harm(segment)
        assert run(["log", "verify", str(tmp_path)]) == 1
        printed = capsys.readouterr().out
        for topic in HARMS:
            (line,) = [one for one in printed.splitlines() if one.startswith(f"{topic}.")]
            assert "DAMAGED" in line, f"{topic} is not reported"
        broker.start()
        for topic, end in behind.items():
            after = list(range(end, COUNT))
            assert read(broker.bootstrap, topic, end, len(after)) == after
        await_noted(lambda: caplog.text, list(HARMS))


@WITHOUT_LEADERS
@pytest.mark.complains(
    "damage_found partition=*",
    "problem kind=damaged: the copy of *: lost records are restored from another copy",
)
def test_a_broker_of_three_notices_all_damage_and_consumers_miss_nothing(tmp_path: Path) -> None:
    topics = {f"{what}-{kind}": what for what in HARMS for kind in ("led", "followed")}
    with Cluster(3, tmp_path) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        placed = [
            NewTopic(
                topic,
                1,
                replica_assignment=[[1, 2, 3] if topic.endswith("-led") else [2, 3, 1]],
                config=SETTINGS,
            )
            for topic in topics
        ]
        for created in admin.create_topics(placed).values():
            created.result(SECONDS_MAX)
        produce(cluster.bootstrap, list(topics))
        data = cluster.process(1).data
        cluster.stop(1)
        for topic, what in topics.items():
            HARMS[what](victim_of(data, topic)[0])
        cluster.restart(1)
        for topic in topics:
            assert read(cluster.bootstrap, topic, 0, COUNT) == list(range(COUNT))
        await_noted(cluster.process(1).said, list(topics))
        await_noted(cluster.process(1).said, list(topics), "repair_done")
        for topic in topics:
            assert read(cluster.bootstrap, topic, 0, COUNT) == list(range(COUNT))
