"""What is stored of a run, and which of its rounds counts."""

from dataclasses import replace
from pathlib import Path

from bench.field.results import load, save
from tests.bench.field.canned import LATENCIES_NS, a_measurement, a_run

FIGURE = "throughput-100.produce"


def test_a_run_is_read_back_as_it_was_stored(tmp_path: Path) -> None:
    latency = a_measurement("latency-1000.latency", "kafka-os", histogram_ns=LATENCIES_NS)
    run = a_run([a_measurement(FIGURE, "kafka-os"), latency])
    save(run, tmp_path / "field.json")
    assert load(tmp_path / "field.json") == run


def test_the_fastest_round_and_the_cheapest_round_count() -> None:
    fast = a_measurement(FIGURE, "kafka-os", rate=2000, cpu_seconds=2.0)
    cheap = a_measurement(FIGURE, "kafka-os", rate=1000, cpu_seconds=0.1, round_number=1)
    run = a_run([fast, cheap])
    assert run.fastest(FIGURE, "kafka-os") == fast
    assert run.cheapest(FIGURE, "kafka-os") == cheap


def test_latencies_of_all_rounds_count() -> None:
    rounds = [
        a_measurement("l", "kafka-os", round_number=number, histogram_ns=LATENCIES_NS)
        for number in range(3)
    ]
    found = a_run(rounds).latencies("l", "kafka-os")
    assert found is not None
    assert found.count == 300


def test_processor_time_is_given_per_million_messages() -> None:
    assert a_measurement("f", "v", rate=500_000, cpu_seconds=0.25).cpu_per_million == 0.5


def test_processor_time_covers_everything_that_was_read() -> None:
    found = replace(a_measurement("f", "v", rate=400_000, cpu_seconds=0.25), read=500_000)
    assert (found.rate, found.cpu_per_million) == (400_000, 0.5)


def test_a_missing_measurement_is_none() -> None:
    run = a_run([])
    assert run.fastest(FIGURE, "kafka-os") is None
    assert run.latencies(FIGURE, "kafka-os") is None
