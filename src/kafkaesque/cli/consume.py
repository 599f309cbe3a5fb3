"""`kafkaesque consume`: the records of a topic, as they arrive or up to the end."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, assert_never

import click

from kafkaesque.cli.options import bootstrap_option, json_option
from kafkaesque.cli.positions import (
    AtOffset,
    AtTime,
    Beginning,
    End,
    Position,
    PositionType,
    Shift,
)
from kafkaesque.cli.record_text import Incoming, to_hex, to_json, to_text
from kafkaesque.client.admin import Admin
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import NotServed, Refused, RefusedForNow, Unreachable
from kafkaesque.client.topics import EARLIEST, LATEST, NOT_FOUND, Place
from kafkaesque.clock import Clock, SystemClock
from kafkaesque.errors import UnknownTopic
from kafkaesque.types import Offset
from kafkaesque.wire.messages.join_group import JoinGroupRequest

if TYPE_CHECKING:
    from confluent_kafka import Message

_POLL_SECONDS = 0.2
_POLL_RECORDS_MAX = 1_000
_SILENCE_MS_MAX = 30_000
"""Silence after which a reader that does not follow gives up."""
_UNASSIGNED_MS_MAX = 360_000
"""The same until a group has assigned partitions: a slow member may keep the others waiting for
five minutes, the default of librdkafka's max.poll.interval.ms."""
_NAMED_MAX = 5
"""How many partitions a sentence names."""


_LEADER_MS_MAX = 15_000
"""How long to ask for offsets: no election takes this long while most voters are up."""


@click.command(epilog="Example: kafkaesque consume orders --from beginning --no-follow")
@click.argument("topic")
@click.option(
    "--from",
    "start",
    type=PositionType(),
    help=(
        "beginning, end, an offset, -20 for the last 20, or a time (ISO or '10 minutes ago')."
        "  [default: end]"
    ),
)
@click.option("--group", help="Read as a member of this group, and commit the offsets.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this partition; may be repeated.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "hex"]),
    default="text",
    show_default=True,
    help="The value, the whole record as JSON, or bytes in hex.",
)
@click.option("--key-separator", help="Print the key and this before each value.")
@click.option("--no-follow", is_flag=True, help="Stop at the end instead of waiting for more.")
@bootstrap_option
@json_option
def consume(  # noqa: PLR0913 - the command's options
    *,
    topic: str,
    start: Position | None,
    group: str | None,
    count: int | None,
    partitions: Sequence[int],
    form: str,
    key_separator: str | None,
    no_follow: bool,
    bootstrap: str,
    is_json: bool,
) -> None:
    """Print the records of a topic as they arrive.

    Starts at the end and runs until ctrl-C by default. A group continues where it stopped; only a
    new group starts at --from.
    """
    separator = None if key_separator is None else os.fsencode(key_separator)
    show = _formatter("json" if is_json else form, separator)
    if group is not None:
        if partitions:
            raise click.UsageError("a group assigns the partitions itself: give no --partition")
        if not isinstance(start, Beginning | End | None):
            raise click.UsageError("with --group, --from must be beginning or end")
        _check_group(bootstrap, topic, group)
        reader = Reader(bootstrap, SystemClock(), group=group, reset=_reset_of(start))
        reader.subscribe(topic)
    else:
        starts, ends = _range(bootstrap, topic, partitions, start or End())
        if no_follow and all(starts[place] >= ends[place] for place in starts):
            return
        reader = Reader(bootstrap, SystemClock())
        reader.assign(starts, ends)
    try:
        with _stopped_by_term():
            _print(reader, show, count, is_following=not no_follow)
    finally:
        reader.close()


class Reader:
    """librdkafka's consumer as a stream of records."""

    def __init__(
        self, bootstrap: str, clock: Clock, *, group: str | None = None, reset: str = "error"
    ) -> None:
        from confluent_kafka import Consumer

        self._clock = clock
        self._is_down = False
        self._ends: Mapping[Place, Offset] | None = None
        self._read_out: set[Place] = set()
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": "kafkaesque",
            "group.id": "kafkaesque-consume" if group is None else group,
            "enable.auto.commit": group is not None,
            "enable.auto.offset.store": False,
            "auto.offset.reset": reset,
            "enable.partition.eof": True,
            "log_level": 0,
            "error_cb": self._note,
        }
        self._consumer: Consumer = Consumer(settings)

    def subscribe(self, topic: str) -> None:
        """Read the partitions that the group assigns."""
        self._consumer.subscribe([topic])

    def assign(self, starts: Mapping[Place, Offset], ends: Mapping[Place, Offset]) -> None:
        """Read these partitions from `starts`; a reader that does not follow stops at `ends`."""
        from confluent_kafka import TopicPartition

        self._ends = ends
        self._read_out = {place for place in starts if starts[place] >= ends[place]}
        rows = [TopicPartition(*place, offset) for place, offset in starts.items()]
        self._consumer.assign(rows)

    def records(self, *, is_following: bool) -> Iterator[list[Incoming]]:
        """Yield records in batches as they arrive; without following, stops at the end.

        Raises Refused for the broker's errors. A reader that does not follow raises Unreachable
        after a long silence: no broker is up, or a partition has no leader or is damaged.
        """
        at_end = set(self._read_out)
        given = self._places()
        heard_ms = self._clock.monotonic_ms()
        while is_following or not self._is_finished(at_end):
            messages = self._consumer.consume(_POLL_RECORDS_MAX, _POLL_SECONDS)
            found = [one for one in messages if not self._is_event(one, at_end)]
            self._is_down = self._is_down and not messages
            was_given, given = given, self._places()
            if messages or given != was_given:
                heard_ms = self._clock.monotonic_ms()
            elif not is_following:
                self._check_silence(self._clock.monotonic_ms() - heard_ms, given - at_end)
            records = [_incoming(one) for one in found]
            if self._ends is not None and not is_following:
                at_end |= {_place(one) for one in records if one.offset + 1 >= self._end_of(one)}
                records = [one for one in records if one.offset < self._end_of(one)]
            yield records
            if records:
                heard_ms = self._clock.monotonic_ms()  # printing may have taken long

    def printed(self, records: Sequence[Incoming]) -> None:
        """Note our position, for the group: records that were not printed do not count as read."""
        from confluent_kafka import KafkaException, TopicPartition

        ends = {_place(one): one.offset + 1 for one in records}
        for place, offset in ends.items():
            with suppress(KafkaException):  # the partition was just reassigned
                self._consumer.store_offsets(offsets=[TopicPartition(*place, offset)])

    def close(self) -> None:
        """Commit and leave, if there is a group."""
        self._consumer.close()

    def _end_of(self, record: Incoming) -> Offset:
        assert self._ends is not None, "ends are known only after assign"
        return self._ends[_place(record)]

    def _places(self) -> set[Place]:
        return {(one.topic, one.partition) for one in self._consumer.assignment()}

    def _is_finished(self, at_end: set[Place]) -> bool:
        places = self._places()
        return bool(places) and places <= at_end

    def _check_silence(self, silence_ms: int, waiting: set[Place]) -> None:
        """Raise Unreachable after too long a silence; `waiting` is empty until a group assigns."""
        if silence_ms <= _SILENCE_MS_MAX:
            return
        if self._is_down:
            raise Unreachable("no broker can be reached")
        if waiting:
            named = ", ".join(f"{topic}-{index}" for topic, index in sorted(waiting)[:_NAMED_MAX])
            more = len(waiting) - _NAMED_MAX
            raise Unreachable(
                f"no records arrive from {named}{f' and {more} more' if more > 0 else ''}: "
                f"{'it' if len(waiting) == 1 else 'they'} may have no leader, or be damaged; "
                "kafkaesque doctor says which"
            )
        if silence_ms > _UNASSIGNED_MS_MAX:
            raise Unreachable("the group assigns no partition to read")

    def _is_event(self, message: "Message", at_end: set[Place]) -> bool:
        error = message.error()
        if error is None:
            return False
        if error.name() != "_PARTITION_EOF":
            raise Refused(f"topic {message.topic()}: {error.str()}", error.name())
        topic, partition = message.topic(), message.partition()
        assert topic is not None, "the end of a partition names it"
        assert partition is not None, "the end of a partition names it"
        at_end.add((topic, partition))
        return True

    def _note(self, error: Any) -> None:
        if error.name() == "_ALL_BROKERS_DOWN":
            self._is_down = True


def _print(
    reader: Reader, show: Callable[[Incoming], bytes], count: int | None, *, is_following: bool
) -> None:
    """Write records until there are no more, there are enough, or the reader of stdout is gone."""
    out = sys.stdout.buffer
    left = count
    try:
        for batch in reader.records(is_following=is_following):
            chosen = batch if left is None else batch[:left]
            out.write(b"".join(map(show, chosen)))
            out.flush()
            reader.printed(chosen)
            if left is not None:
                left -= len(chosen)
                if left == 0:
                    return
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _stopped_by_term() -> Iterator[None]:
    """Treat SIGTERM (from containers and `timeout`) like ctrl-C: the group is left cleanly."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _formatter(form: str, separator: bytes | None) -> Callable[[Incoming], bytes]:
    match form:
        case "json":
            return to_json
        case "hex":
            return to_hex
        case _:
            return lambda record: to_text(record, separator)


def _reset_of(start: Position | None) -> str:
    return "earliest" if isinstance(start, Beginning) else "latest"


def _range(
    bootstrap: str, topic: str, partitions: Sequence[int], start: Position
) -> tuple[dict[Place, Offset], dict[Place, Offset]]:
    """Return where to start in each partition, and where it ends now."""
    try:
        return _looked_up(bootstrap, topic, partitions, start)
    except RefusedForNow as error:
        raise Unreachable(f"{error}; kafkaesque doctor says why") from error


def _check_group(bootstrap: str, topic: str, group: str) -> None:
    """Raise what keeps a group from reading: librdkafka would wait for it silently."""
    try:
        with Admin(bootstrap, ClientConfig(deadline_ms=_LEADER_MS_MAX)) as admin:
            places = admin.topics.describe(topic).places
            if not admin.serves(JoinGroupRequest):
                raise NotServed("the broker does not serve consumer groups")
            admin.topics.offsets(places, LATEST)
            admin.groups.committed(group)
    except RefusedForNow as error:
        raise Unreachable(f"{error}; kafkaesque doctor says why") from error


def _looked_up(
    bootstrap: str, topic: str, partitions: Sequence[int], start: Position
) -> tuple[dict[Place, Offset], dict[Place, Offset]]:
    with Admin(bootstrap, ClientConfig(deadline_ms=_LEADER_MS_MAX)) as admin:
        places = admin.topics.describe(topic).places
        missing = set(partitions) - {number for _, number in places}
        if missing:
            raise UnknownTopic(f"topic {topic} has no partition {min(missing)}")
        places = [place for place in places if not partitions or place[1] in partitions]
        firsts = admin.topics.offsets(places, EARLIEST)
        ends = admin.topics.offsets(places, LATEST)
        match start:
            case Beginning():
                return firsts, ends
            case End():
                return ends, ends
            case AtOffset(offset):
                wanted = dict.fromkeys(places, offset)
            case AtTime(timestamp_ms):
                found = admin.topics.offsets(places, timestamp_ms)
                wanted = {p: ends[p] if o == NOT_FOUND else o for p, o in found.items()}
            case Shift(records):
                wanted = {place: ends[place] + records for place in places}
            case _:
                assert_never(start)
    return {p: min(max(wanted[p], firsts[p]), ends[p]) for p in places}, ends


def _place(record: Incoming) -> Place:
    return record.topic, record.partition


def _incoming(message: "Message") -> Incoming:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None, "a record has a topic"
    assert partition is not None, "a record has a partition"
    assert offset is not None, "a record has an offset"
    headers = message.headers() or []
    pairs = headers if isinstance(headers, list) else list(headers.items())
    return Incoming(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=_as_bytes(message.key()),
        value=_as_bytes(message.value()),
        headers=tuple((name, _as_bytes(value)) for name, value in pairs),
    )


def _as_bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
