"""A short real run of Kafkaesque alone; systems that are not installed are skipped."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.field import report
from bench.field.adapters.activemq import ActiveMq
from bench.field.adapters.kafka import Kafka
from bench.field.adapters.kafkaesque import Kafkaesque
from bench.field.adapters.nats import Nats
from bench.field.adapters.rabbitmq import RabbitMq
from bench.field.adapters.redis import Redis
from bench.field.expected import expected_seconds
from bench.field.fetched import driver, driver_command, is_compiled
from bench.field.measuring import PATIENCE_SECONDS, call
from bench.field.processes import Failed
from bench.field.python_driver import main as python_driver
from bench.field.results import Results, load, save
from bench.field.run import Run
from bench.field.system import Missing, Running, System, Variant
from bench.field.workload import BRIEF, FULL, QUICK, Kind, Plan, Scope
from kafkaesque.testing import Broker

pytestmark = pytest.mark.compat


class Absent(System):
    """A system that is not installed."""

    name = "absent"
    title = "Absent"
    package = "absent-server"

    def version(self) -> str:
        raise Missing("it is not on PATH", self.package)

    def variants(self) -> Sequence[Variant]:
        raise AssertionError("a system that is not there is not asked for more")

    def start(self, variant: Variant, folder: Path) -> Running:
        raise AssertionError("a system that is not there is not started")


class NewNats(Nats):
    """A server that has all modes, whatever is installed here."""

    def version(self) -> str:
        return "2.15.2"


@pytest.mark.requirement("Q-3")
@pytest.mark.long
def test_a_short_run_of_ours_measures_everything_and_writes_a_report(tmp_path: Path) -> None:
    told: list[int] = []
    has_reader = is_compiled("kafka") and is_compiled("fetch")
    run = Run(BRIEF, [Kafkaesque(), Absent()], is_pinned=False)
    found: list[Results] = list(run.go(lambda _, steps: told.append(steps)))
    results = found[-1]
    assert results.failures == []
    assert [(row.what, row.package) for row in results.skipped] == [("Absent", "absent-server")]
    assert sum(told) == run.steps
    for variant in ("kafkaesque-os-3", "kafkaesque-always-3"):
        assert results.fastest("replicated-100.produce", variant) is not None
        (killed,) = results.of("failover.pause", variant)
        assert 0 < killed.seconds < PATIENCE_SECONDS  # how long depends on the machine
        assert killed.messages > 1
    for variant in ("kafkaesque-os", "kafkaesque-always"):
        sent = results.fastest("throughput-100.produce", variant)
        read = results.fastest("throughput-100.consume", variant)
        latencies = results.latencies("latency-1000.latency", variant)
        assert sent is not None
        assert read is not None
        assert latencies is not None
        assert sent.messages > 0
        assert read.messages > 0
        if has_reader:  # a client in Python does not report its read-ahead
            assert read.read is not None
            assert read.read >= sent.messages
        assert latencies.count == 500
        assert sent.resident_bytes > 10_000_000
    save(results, tmp_path / "field.json")
    assert load(tmp_path / "field.json").figures() == results.figures()
    report.write(results, tmp_path)
    assert "Kafkaesque, always (default)" in (tmp_path / "field.md").read_text()


def test_without_a_compiler_python_clients_measure(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        words = ["--port", broker.bootstrap.rpartition(":")[2], "--topic", "plain"]
        assert python_driver(["create", *words, "--config", "flush.policy=os"]) == 0
        assert python_driver(["produce", *words, "--count", "1"]) == 0
        assert python_driver(["consume", *words, "--count", "1"]) == 0
        assert python_driver(["latency", *words, "--rate", "100", "--seconds", "0.2"]) == 0
        assert python_driver(["pause", *words, "--rate", "100", "--seconds", "0.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all("confluent-kafka" in line for line in lines)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_every_c_driver_documents_its_arguments() -> None:
    with pytest.raises(Failed, match="usage"):
        call([str(driver("stomp")), "nonsense"])


@pytest.mark.skipif(not is_compiled("kafka"), reason="needs a C compiler and librdkafka-dev")
def test_the_benchmark_reader_reads_everything_and_tails_in_place() -> None:
    with Broker() as broker:
        words = ["--port", broker.bootstrap.rpartition(":")[2], "--topic", "read", "--size", "100"]
        call([*driver_command("kafka"), "create", *words])
        call([*driver_command("kafka"), "produce", *words, "--count", "20000", "--linger", "1"])
        for more, count in (([], 20_000), (["--tail", "77"], 77)):
            command = [str(driver("fetch")), "consume", *words, *more, "--count", str(count)]
            found = call([*command, "--seconds", "20"])
            assert found["read"] == count
            assert 0 < found["messages"] <= count
        with pytest.raises(Failed, match="20000 of 20001 messages arrived"):
            call([str(driver("fetch")), "consume", *words, "--count", "20001", "--seconds", "0.5"])
        with pytest.raises(Failed, match="not what was sent"):
            call([str(driver("fetch")), "consume", *words, "--count", "1", "--size", "99"])


def test_workload_names_are_unique_and_the_full_run_includes_the_quick_one() -> None:
    for plan in (QUICK, FULL):
        names = [workload.name for workload in plan.workloads]
        assert len(set(names)) == len(names)
    full = {workload.name for workload in FULL.workloads}
    assert {workload.name for workload in QUICK.workloads} <= full


def test_queues_are_not_measured_on_workloads_for_logs() -> None:
    variants = {variant.name: variant for variant in Kafkaesque().variants()}
    kafka_only = [w for w in FULL.workloads if w.scope is Scope.KAFKA]
    assert all(w.runs_on(variants["kafkaesque-os"]) for w in kafka_only)
    assert not any(w.runs_on(variants["kafkaesque-always"]) for w in kafka_only)


def test_workloads_that_kill_a_server_run_last() -> None:
    for plan in (QUICK, FULL, BRIEF):
        kinds = [workload.kind for workload in plan.workloads]
        assert kinds.index(Kind.FAILOVER) == len(kinds) - 1


def test_only_clusters_run_the_cluster_workloads() -> None:
    variants = {variant.name: variant for variant in Kafkaesque().variants()}
    for workload in FULL.workloads:
        is_for_clusters = workload.scope is Scope.CLUSTER
        assert workload.runs_on(variants["kafkaesque-os-3"]) is is_for_clusters
        assert workload.runs_on(variants["kafkaesque-os"]) is not is_for_clusters


def test_expensive_workloads_are_measured_once() -> None:
    variant = Kafkaesque().variants()[0]
    first, second = (FULL.for_variant(variant, number) for number in (0, 1))
    assert [one.name for one in first if one not in second] == ["tail-large"]


@pytest.mark.parametrize(("plan", "minutes"), [(QUICK, 8), (FULL, 55)])
def test_a_run_of_all_systems_is_expected_to_fit_its_time(plan: Plan, minutes: int) -> None:
    variants = [
        variant
        for system in (Kafkaesque(), Kafka(), NewNats(), Redis(), RabbitMq(), ActiveMq())
        for variant in system.variants()
    ]
    assert minutes / 2 < expected_seconds(plan, variants) / 60 < minutes
