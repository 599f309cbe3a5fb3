"""The limits and waits of the client, with the reason for each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """How Kafkaesque's own client talks to brokers."""

    client_id: str = "kafkaesque"
    """The name shown in broker logs and in `group describe`."""

    frame_bytes_max: int = 100 << 20
    """The largest response: as large as the largest request."""

    in_flight_max: int = 100
    """Unanswered requests on one connection."""

    connect_ms_max: int = 5_000
    """How long to wait for a connection: reachable machines answer far sooner."""

    request_ms_max: int = 30_000
    """How long to wait for one response: Kafka's own default."""

    deadline_ms: int = 40_000
    """Total time for retries: longer than one response may take, shorter than patience."""

    backoff_ms_min: int = 50
    """The first pause before a retry; each later one is twice as long."""

    backoff_ms_max: int = 1_000
    """The longest pause: a new leader is usually elected by then."""

    fetch_bytes_max: int = 8 << 20
    """How much one fetch requests: a few of the largest batches."""
