"""The report of a run: goals with their ratios, losses included, and plots that are XML."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from bench.field import report
from bench.field.goals import Goal, goals
from bench.field.plots import plots
from bench.field.results import Results
from tests.bench.field.canned import LATENCIES_NS, a_measurement, a_run

SLOW_NS = [(value * 3, count) for value, count in LATENCIES_NS]


def a_lost_run() -> Results:
    """Return a run in which we send faster than Kafka and are slower end to end."""
    produce, latency = "throughput-100.produce", "latency-1000.latency"
    return a_run(
        [
            a_measurement(produce, "kafkaesque-os", rate=3_000_000, cpu_seconds=0.3),
            a_measurement(produce, "kafka-os", rate=1_000_000, cpu_seconds=1.0),
            a_measurement(latency, "kafkaesque-os", histogram_ns=SLOW_NS),
            a_measurement(latency, "kafka-os", histogram_ns=LATENCIES_NS),
        ]
    )


def goal(run: Results, what: str, against: str) -> Goal:
    """Return the one goal of this name."""
    (found,) = [g for g in goals(run) if (g.what, g.against) == (what, against)]
    return found


def test_a_reached_goal_says_so() -> None:
    found = goal(a_lost_run(), "produce, 100 B, os", "Apache Kafka")
    assert (found.ratio, found.is_reached) == (3.0, True)


def test_a_missed_goal_says_so() -> None:
    what = "end to end at 1,000 messages/s, p99, os"
    assert goal(a_lost_run(), what, "Apache Kafka").is_reached is False


def test_less_processor_time_is_better() -> None:
    what = "produce, 100 B, os: broker's processor time"
    found = goal(a_lost_run(), what, "Apache Kafka")
    assert found.ratio is not None
    assert found.ratio < 0.7
    assert found.is_reached is True


def test_a_goal_without_a_measurement_is_neither_reached_nor_missed() -> None:
    found = goal(a_lost_run(), "three brokers, RF 3, acks=all, 100 B, os", "Apache Kafka")
    assert (found.ratio, found.is_reached) == (None, None)


def test_of_several_kills_the_one_with_the_longest_pause_counts() -> None:
    pauses = [
        replace(a_measurement("failover.pause", variant), seconds=seconds)
        for variant, seconds in (
            ("kafkaesque-os-3", 0.5),
            ("kafkaesque-os-3", 4.0),
            ("kafka-os-3", 8.0),
        )
    ]
    what = "longest pause of a producer after kill -9 of the leader, os"
    found = goal(a_run(pauses), what, "Apache Kafka")
    assert (found.ratio, found.is_reached) == (0.5, True)


def test_the_report_lists_losses_and_what_was_left_out() -> None:
    text = report.markdown(a_lost_run(), "pictures/")
    assert "| 3.00 x | 3,000,000 messages/s | 1,000,000 messages/s | reached |" in text
    assert "**missed**" in text
    assert "| Redis Streams | not on PATH | redis-server |" in text
    assert "![Latency](pictures/latency.svg)" in text


def test_a_busy_machine_is_mentioned_first() -> None:
    quiet = a_run([a_measurement("throughput-100.produce", "kafka-os")])
    busy = a_run([a_measurement("throughput-100.produce", "kafka-os", others=0.4)])
    assert "not ours alone" not in report.markdown(quiet, "")
    assert "others took 40% of it" in report.markdown(busy, "")


def test_a_run_that_touched_memory_first_says_why() -> None:
    run = a_lost_run()
    touched = replace(run, machine=replace(run.machine, touched_bytes=7_000_000_000))
    assert "written and deleted" not in report.markdown(run, "")
    assert "7 GB in all: on a virtual machine" in report.markdown(touched, "")


def test_the_tail_latency_under_load_is_compared_within_its_round() -> None:
    small, large = "tail-small.consume", "tail-large.consume"
    run = a_run(
        [
            a_measurement(small, "kafkaesque-os", rate=1000),
            a_measurement(large, "kafkaesque-os", rate=950),
            a_measurement(small, "kafkaesque-os", rate=2000, round_number=1),
        ]
    )
    found = goal(run, "read of the tail with much stored", "itself with little stored")
    assert (found.ratio, found.is_reached) == (0.95, True)


def test_streams_are_also_compared_with_equivalent_clients() -> None:
    figure = "in-place-100.consume"
    rates = {"kafkaesque-os": 12_000_000, "rabbitmq-stream-os": 6_000_000}
    run = a_run([a_measurement(figure, variant, rate=rate) for variant, rate in rates.items()])
    found = goal(run, "consume, 100 B, os, both read in place", "RabbitMQ stream")
    assert (found.ratio, found.is_reached) == (2.0, False)


def test_every_plot_and_the_page_are_written(tmp_path: Path) -> None:
    report.write(a_lost_run(), tmp_path)
    for plot in plots(a_lost_run()):
        ElementTree.fromstring((tmp_path / plot).read_text())
    assert {"throughput.svg", "latency.svg", "cpu.svg"} <= plots(a_lost_run()).keys()
    page = (tmp_path / "field.html").read_text()
    assert "Some &lt;processor&gt;" in page
    assert page.count("<svg") == len(plots(a_lost_run()))


def test_a_longer_bar_is_a_larger_value() -> None:
    bars = ElementTree.fromstring(plots(a_lost_run())["throughput.svg"])
    widths = [
        float(bar.attrib["width"])
        for bar in bars.iter("{http://www.w3.org/2000/svg}rect")
        if "x" in bar.attrib
    ]
    assert len(widths) == 2
    assert abs(widths[0] / widths[1] - 3.0) < 0.01
