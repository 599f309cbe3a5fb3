"""Settings for what clients and operators meet: addresses, limits, the log, the text protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kafkaesque.errors import BadConfiguration
from kafkaesque.events import Component, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where a broker listens, its public address, and where it stores its data."""

    listen: str = "localhost"
    """The address to listen on; `localhost` is this machine only, by IPv4 and IPv6."""

    port: int = 9092
    """The one port for all protocols, Kafka's default; 0 picks a free one."""

    advertised: str = ""
    """`host:port` given to clients; empty gives each client the address it connected to."""

    data: Path = Path("data")
    """The folder for all data."""

    join: str = ""
    """`host:port` of any broker of the cluster to join; the data folder remembers it."""

    rack: str = ""
    """This broker's rack: replicas are spread over racks, and clients may prefer theirs."""

    secret_file: Path = Path()
    """The file with the cluster's secret, which brokers on several machines must share."""

    stop_ms: int = 5_000
    """At a stop, requests in progress have this long to finish."""

    linger_ms: int = 500
    """A stopping broker of a cluster stays this long after handing over, so that clients can
    move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """What one client, and all clients together, may use; beyond it they wait or are closed."""

    frame_bytes_max: int = 100 << 20
    """The largest Produce request, Kafka's own default; a larger one closes the connection."""

    request_bytes_max: int = 2 << 20
    """The largest request of any other API: tiny elements take 25 times their size in memory."""

    inflight_bytes_max: int = 256 << 20
    """Bytes received and not yet answered, over all connections; beyond it the largest holders
    wait."""

    requests_pending_max: int = 500
    """Unanswered requests on one connection; beyond it the broker stops reading from it."""

    write_buffer_bytes_max: int = 1 << 20
    """Unsent response bytes for one client; beyond it the broker stops serving it until it
    reads."""

    untaken_bytes_max: int = 256 << 20
    """Unsent response bytes for all clients; beyond it, fetch responses shrink."""

    connections_max: int = 10_000
    """Connections of all kinds; further ones are closed at once. Each takes a descriptor."""

    connections_per_address_max: int = 1_000
    """Connections from one address, so that one machine cannot take them all."""

    connection_rate_max: int = 200
    """New connections per second: accepting must leave time for serving."""

    connection_rate_per_address_max: int = 20
    """New connections per second from one address; a failing client retries again and again."""

    loopback_is_limited: bool = False
    """Whether rates and limits per address also apply to programs on this machine."""

    listen_backlog: int = 1024
    """Connections that the system queues until they are accepted: enough for a burst."""

    first_byte_ms_max: int = 10_000
    """A connection must reveal its protocol within this time, or it is closed."""

    frame_ms_max: int = 30_000
    """A request must arrive in full within this time of its first byte, or its connection is
    closed."""

    idle_ms_max: int = 600_000
    """A connection idle for this long is closed: Kafka's own default."""

    http_head_bytes_max: int = 8_192
    """The request line and headers of an HTTP request, as in most servers."""

    http_head_ms_max: int = 10_000
    """An HTTP request must arrive in full within this time, or its connection is closed."""

    refusals_logged_max: int = 10
    """Log lines per second about refused connections; beyond it they are only counted."""

    metrics_series_max: int = 1_000
    """Topics, partitions and share groups, each, with own lines in /metrics; sums have the rest."""


class LogFormat(StrEnum):
    """The format of a broker's log lines."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsConfig:
    """What a broker writes to its log on stderr."""

    format: LogFormat = LogFormat.TEXT
    """`text` for humans; `json` is one object per line, for log collectors."""

    level: Level = Level.INFO
    """`info`, `warning` or `error`: events below it are not written. Metrics count all events."""

    levels: str = ""
    """Components with their own level, as in `raft=warning disk=info`."""

    lines_per_second_max: int = 20
    """Lines of one event; `events_left_out` reports the rest. A start elects thousands of
    leaders."""

    def __post_init__(self) -> None:
        self.by_component()

    def by_component(self) -> Mapping[Component, Level]:
        """Return the components with their own level; raises BadConfiguration."""
        found = {}
        for word in self.levels.split():
            component, _, level = word.partition("=")
            try:
                found[Component(component)] = Level(level)
            except ValueError:
                raise BadConfiguration(
                    f"events.levels has {word!r}, not COMPONENT=LEVEL with a component of "
                    f"{', '.join(Component)} and a level of {', '.join(Level)}"
                ) from None
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLimits:
    """What one connection of the text protocol may use."""

    line_bytes_max: int = (1 << 20) + (1 << 16)
    """A line: the largest message that a topic accepts by default, plus quoting and command."""

    read_ahead_bytes: int = 1 << 16
    """Bytes of the following commands to read ahead while a command runs."""

    write_buffer_bytes: int = 1 << 18
    """Unread replies and pushed records for one client; beyond it the client must wait."""

    records_per_answer_max: int = 100
    """Records in one reply to CONS: as many as a human can read."""

    answer_bytes_max: int = 4 << 20
    """Bytes of keys and bodies in one reply to CONS; the first record is always included."""

    fetch_bytes: int = 1 << 18
    """Bytes to fetch at a time for CONS and PUSH; a larger batch still comes whole."""

    publish_records_max: int = 500
    """PUBS lines that are queued together are written together, up to this many."""

    publish_bytes_max: int = 1 << 18
    """The same in bytes: well below what a topic accepts as one batch."""

    timeout_ms: int = 30_000
    """Publishing and creating time out after this long, outcome unknown; so does a leaderless
    push."""

    push_wait_ms: int = 30_000
    """A push fetches again after this long without new records; sooner if another broker leads."""

    commit_interval_ms: int = 1_000
    """A push commits its group's position at most this often, and when it ends."""

    subscriptions_per_connection_max: int = 1_000
    """Subscriptions of one connection."""

    subscriptions_max: int = 100_000
    """Subscriptions of all connections together, some 500 bytes each."""
