"""Made-up results of a run."""

from collections.abc import Sequence

from bench.field.results import Machine, Measurement, Participant, Results, Skipped

LATENCIES_NS = [(100_000, 90), (200_000, 9), (9_000_000, 1)]


def a_measurement(
    figure: str,
    variant: str,
    *,
    rate: float = 1000.0,
    cpu_seconds: float = 0.5,
    round_number: int = 0,
    others: float = 0.0,
    histogram_ns: Sequence[tuple[int, int]] = (),
) -> Measurement:
    """Return a result of one second."""
    return Measurement(
        figure=figure,
        variant=variant,
        round=round_number,
        messages=int(rate),
        seconds=1.0,
        message_bytes=100,
        cpu_seconds=cpu_seconds,
        client_cpu_seconds=0.1,
        resident_bytes=50_000_000,
        others_cpu_share=others,
        load=0.1,
        histogram_ns=list(histogram_ns),
    )


def a_participant(variant: str, title: str) -> Participant:
    """Return a system that took part."""
    return Participant(
        variant=variant,
        title=title,
        system=title,
        version="1.0",
        durability="os",
        is_default=True,
        settings="none",
        client="C",
    )


def a_run(measurements: Sequence[Measurement]) -> Results:
    """Return a run of ours and Kafka's."""
    return Results(
        plan="quick",
        commit="abc",
        date="2026-01-31",
        rounds=2,
        machine=Machine(
            processor="Some <processor>",
            cores=2,
            memory_bytes=8 << 30,
            system="Linux",
            loopback_bytes_per_second=4e9,
            load_before=0.0,
            load_after=0.0,
            is_pinned=False,
        ),
        participants=[
            a_participant("kafkaesque-os", "Kafkaesque, os"),
            a_participant("kafka-os", "Apache Kafka, os"),
        ],
        skipped=[Skipped(what="Redis Streams", reason="not on PATH", package="redis-server")],
        failures=[],
        measurements=measurements,
        titles={"throughput-100": "messages of 100 B", "latency-1000": "at 1,000 a second"},
    )
