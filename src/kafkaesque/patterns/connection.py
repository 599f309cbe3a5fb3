"""Connection settings of the patterns, and the topics that they create for themselves."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from kafkaesque.callbacks import ignore
from kafkaesque.errors import InvalidPattern, PatternError
from kafkaesque.types import Offset

Client: TypeAlias = str | Mapping[str, Any]
"""Brokers to connect to first, as `host:port,…`; or librdkafka settings, for credentials."""

ADMIN_SECONDS_MAX = 15.0
ANSWER_MS_MAX = 10_000
"""After this silence a request is retried, maybe on another broker; librdkafka waits 60 s."""
_ASK_SECONDS = 3.0
CONSUME_BATCH_MAX = 1_000
_AS_THE_BROKER_LIKES = -1
_LOOK_AGAIN_SECONDS = 0.02
_KNOWN_SECONDS_MAX = 1.0
_PASSING = frozenset(
    {
        *(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE),
        *(KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION),
        *(KafkaError._UNKNOWN_TOPIC, KafkaError.REQUEST_TIMED_OUT),
        *(KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._WAIT_COORD),
        *(KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR),
        KafkaError.NOT_CONTROLLER,
        *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError._ALL_BROKERS_DOWN),
        KafkaError._NOENT,  # from an admin client, for partitions without a leader
    }
)
"""Transient errors while a topic is created or a leader is replaced."""
_SILENCE = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN})
"""librdkafka's errors when no broker answers."""
T = TypeVar("T")


def settings(client: Client, defaults: Mapping[str, Any], fixed: Mapping[str, Any]) -> Any:
    """Return settings for librdkafka: the user's win over the defaults, never over the fixed."""
    given = {"bootstrap.servers": client} if isinstance(client, str) else dict(client)
    if not given.get("bootstrap.servers"):
        raise InvalidPattern("bootstrap.servers must be given")
    # librdkafka would print lost connections on stderr; what matters comes with the results.
    quiet = {"log_level": 0, "error_cb": ignore, "socket.timeout.ms": ANSWER_MS_MAX}
    return {**quiet, **defaults, **given, **fixed}


def patiently(
    ask: Callable[[], T],
    passing: frozenset[int] = _PASSING,
    seconds_max: float = ADMIN_SECONDS_MAX,
) -> T:
    """Retry while the error is transient; blocks, raises KafkaException."""
    ends = time.monotonic() + seconds_max
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in passing or time.monotonic() > ends:
                raise
        time.sleep(_LOOK_AGAIN_SECONDS)


def make_topics(
    client: Client,
    topics: Mapping[str, Mapping[str, str]],
    *,
    partitions: int | None = None,
    seconds_max: float = ADMIN_SECONDS_MAX,
) -> dict[str, int]:
    """Create the missing topics, and return how many partitions each has.

    Blocks. New topics get the given settings; existing ones keep theirs. Raises PatternError, also
    when no broker answers in time.
    """
    ends = time.monotonic() + seconds_max
    admin = AdminClient(settings(client, {}, {}))
    count = _AS_THE_BROKER_LIKES if partitions is None else partitions
    wanted = [
        NewTopic(name, num_partitions=count, replication_factor=-1, config=dict(config))
        for name, config in topics.items()
    ]
    where = settings(client, {}, {})["bootstrap.servers"]
    silent = f"no broker at {where} answered within {seconds_max:g} s"
    while wanted := _create(admin, wanted, ends, silent):
        time.sleep(_LOOK_AGAIN_SECONDS)
    while (left := ends - time.monotonic()) > 0:
        found = _listed(admin, left, silent)
        if all(found.get(name) for name in topics):
            return {name: found[name] for name in topics}
        time.sleep(_LOOK_AGAIN_SECONDS)  # created, but not yet known everywhere
    raise PatternError(f"topics {', '.join(topics)} were not created")


def _create(
    admin: AdminClient, wanted: Sequence[NewTopic], ends: float, silent: str
) -> list[NewTopic]:
    """Create topics; return those with an unknown outcome that may be retried.

    Raises PatternError if one cannot be created.
    """
    unknown = []
    seconds = max(0.0, ends - time.monotonic())
    asked = admin.create_topics(list(wanted), request_timeout=seconds)
    for topic in wanted:
        try:
            asked[topic.topic].result(max(0.0, ends - time.monotonic()))
        except KafkaException as error:
            code, why = error.args[0].code(), error.args[0].str()
            if code in _SILENCE:
                raise PatternError(f"topic {topic.topic} cannot be created: {silent}") from error
            if code in _PASSING and time.monotonic() < ends:
                unknown.append(topic)  # a leader was replaced: it may exist
            elif code != KafkaError.TOPIC_ALREADY_EXISTS:
                raise PatternError(f"topic {topic.topic} cannot be created: {why}") from error
        except TimeoutError as error:
            raise PatternError(f"topic {topic.topic} cannot be created: {silent}") from error
    return unknown


def _listed(admin: AdminClient, seconds_max: float, silent: str) -> dict[str, int]:
    """Return how many partitions each topic has; raises PatternError with `silent`."""
    try:
        found = patiently(lambda: admin.list_topics(timeout=seconds_max), seconds_max=seconds_max)
    except KafkaException as error:
        raise PatternError(silent) from error
    return {name: len(topic.partitions) for name, topic in found.topics.items()}


def topic_counts(client: Client) -> dict[str, int]:
    """Return how many partitions each topic has; blocks, raises PatternError."""
    try:
        found = AdminClient(settings(client, {}, {})).list_topics(timeout=ADMIN_SECONDS_MAX)
    except KafkaException as error:
        raise PatternError(f"no broker answers: {error.args[0].str()}") from error
    return {name: len(topic.partitions) for name, topic in found.topics.items()}


def partitions_of(client: Client, topic: str) -> int:
    """Return how many partitions a topic has; blocks, raises PatternError if it does not exist.

    Retries for a while when a broker reports that it does not exist: a broker that was away may not
    know it yet.
    """
    ends = time.monotonic() + _KNOWN_SECONDS_MAX
    while not (count := topic_counts(client).get(topic, 0)):
        if time.monotonic() > ends:
            raise PatternError(f"there is no topic {topic}")
        time.sleep(_LOOK_AGAIN_SECONDS)
    return count


def delete_topic(client: Client, topic: str) -> None:
    """Delete a topic of our own; it may be gone already."""

    def ask() -> None:
        # A new client each time: an old one waits for the controller that it knows, dead or alive.
        admin = AdminClient(settings(client, {}, {}))
        asked = admin.delete_topics([topic], request_timeout=_ASK_SECONDS)
        asked[topic].result(ADMIN_SECONDS_MAX)

    try:
        patiently(ask, _PASSING - {KafkaError.UNKNOWN_TOPIC_OR_PART})
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise PatternError(f"topic {topic} was not deleted: {error.args[0].str()}") from error


class Ends:
    """Asks where partitions end, over its own connection.

    A consumer's connection answers only after its long poll, perhaps half a second later.
    """

    def __init__(self, client: Client) -> None:
        self._settings = settings(client, {}, {})
        self._admin = AdminClient(self._settings)

    def ask(
        self, topic: str, partitions: Iterable[int], *, is_committed: bool = False
    ) -> dict[int, Offset]:
        """Return the offset after the last message of each; blocks, raises PatternError.

        With `is_committed`, the offset where the first open transaction starts, if there is one.
        """
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # no annotations
        wanted = {TopicPartition(topic, each): latest for each in partitions}

        def ask() -> dict[int, Offset]:
            # Keep a reference: another thread may have replaced it, and an admin client without
            # references is closed and never answers.
            admin = self._admin
            try:
                answers = admin.list_offsets(
                    wanted, request_timeout=_ASK_SECONDS, isolation_level=level
                )
                return {
                    place.partition: future.result(ADMIN_SECONDS_MAX).offset
                    for place, future in answers.items()
                }
            except KafkaException:
                # librdkafka remembers the leader, and would ask a dead one again and again.
                if self._admin is admin:
                    self._admin = AdminClient(self._settings)
                raise

        try:
            return patiently(ask)
        except KafkaException as error:
            raise PatternError(f"{topic} cannot be read: {error.args[0].str()}") from error
