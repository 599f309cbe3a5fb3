"""Runs workloads against one system that was started for it."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.field import fetched, machine, touching
from bench.field.processes import Failed
from bench.field.results import Measurement
from bench.field.system import Missing, Running, System, Variant
from bench.field.workload import KIB, MIB, Kind, Plan, Scope, Workload
from bench.serving import a_batch, produce_frame

CONSUME_SECONDS_MAX = 30.0
PATIENCE_SECONDS = 90
IDLE_SECONDS = 1.0
CREATE_SECONDS_MAX = 60
"""How long a cluster may take to form."""
FAILOVER_SECONDS = 4.0
KILL_AFTER_SECONDS = 1.5
FIRST_BYTES = 100
TAIL_BYTES = 4 * MIB
TAIL_READS = 30
"""Each takes a few milliseconds, so the best of several counts."""
REPLAY_RECORDS = 950
REPLAY_IN_FLIGHT = 5
_LOOK_EVERY_SECONDS = 0.1
_ERROR_BEFORE_NAME = 7
_ERROR_BEHIND_NAME = 5
"""Position of the error in a version 9 Produce response: after the number, tags, a length, the
topic's name with its length, another length and the partition."""


def call(command: list[str], seconds: float = 0.0) -> dict[str, Any]:
    """Run a driver to its end and return what it printed; raises Failed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Failed(
            f"{command[1]} took longer than {PATIENCE_SECONDS} s more than asked"
        ) from None
    if done.returncode:
        raise Failed(" / ".join(done.stderr.strip().splitlines()[-2:]) or f"exit {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Session:
    """One running system, and what is measured of it in one round."""

    def __init__(
        self,
        system: System,
        variant: Variant,
        running: Running,
        *,
        plan: Plan,
        round_number: int,
        folder: Path,
    ) -> None:
        self._system = system
        self._variant = variant
        self._running = running
        self._plan = plan
        self._round = round_number
        self._folder = folder
        self.client = ""
        self.touched_bytes = 0

    def first_message(self, start: float) -> Measurement:
        """Create a topic and send one message; the clock starts at `start`.

        Memory and processor time are those of the second after it, which is idle.
        """
        self._create_first("first")
        command = self._command("produce", "first", {"--count": 1, "--seconds": PATIENCE_SECONDS})
        found = call(command)
        self.client = str(found["client"])
        found["seconds"] = time.perf_counter() - start
        watch = _Watch(self._running)
        time.sleep(IDLE_SECONDS)
        return self._measurement("start", found, FIRST_BYTES, watch)

    def warm_up(self) -> None:
        """Send and read for a while, half of it in batches; none of it counts."""
        seconds = self._plan.warm_up_seconds / 2
        for name, unbatched in (("warm-up-1", 0), ("warm-up-2", 1)):
            self._create(name, partitions=1)
            options = {"--size": KIB, "--unbatched": unbatched}
            limits = {"--seconds": seconds, "--count": max(1, self._plan.bytes_max // KIB)}
            found = call(self._command("produce", name, {**options, **limits}))
            limits = {"--seconds": CONSUME_SECONDS_MAX, "--count": found["messages"]}
            call(self._command("consume", name, {**options, **limits}))

    def run(self, workload: Workload) -> Iterator[Measurement]:
        """Yield the measurements of one workload; raises Failed and Missing."""
        if workload.scope is Scope.IN_PLACE and not self._reader():
            raise Missing("the bench's own reader needs librdkafka-dev", "librdkafka-dev")
        self._create(workload.name, workload.partitions)
        match workload.kind:
            case Kind.THROUGHPUT:
                sent = self._produce(workload)
                yield sent
                yield self._consume(workload, sent.messages)
            case Kind.FAN_OUT:
                sent = self._produce(workload)
                yield self._consume(workload, sent.messages)
            case Kind.LATENCY:
                yield self._latency(workload)
            case Kind.CATCH_UP:
                yield self._catch_up(workload)
            case Kind.TAIL:
                yield self._tail(workload)
            case Kind.REPLAY:
                yield self._replay(workload)
            case Kind.FAILOVER:
                yield self._failover(workload)

    def _produce(self, workload: Workload) -> Measurement:
        options = {
            "--seconds": self._plan.seconds,
            "--count": max(1, self._plan.bytes_max // workload.size),
        }
        self._touch(workload)
        return self._timed(workload, "produce", "produce", options)

    def _consume(self, workload: Workload, count: int) -> Measurement:
        options = {"--count": count, "--seconds": CONSUME_SECONDS_MAX}
        self._touch(workload, is_reading=True)
        return self._timed(workload, "consume", "consume", options)

    def _latency(self, workload: Workload) -> Measurement:
        options = {"--seconds": self._plan.latency_seconds, "--rate": workload.rate}
        self._touch(workload)
        return self._timed(workload, "latency", "latency", options)

    def _touch(self, workload: Workload, *, is_reading: bool = False) -> None:
        """Provide the memory that the next measurement may need."""
        stored = 0 if is_reading else touching.stored_bytes(self._plan, workload)
        wanted = stored * self._variant.brokers + touching.ASIDE_BYTES
        self.touched_bytes += touching.touch(self._folder, wanted)

    def _tail(self, workload: Workload) -> Measurement:
        stored = workload.stored_bytes // workload.size
        fill = {"--count": stored, "--seconds": PATIENCE_SECONDS}
        call(self._command("produce", workload.name, {**_options(workload), **fill}))
        os.sync()  # pending writes must not be charged to readers
        last = TAIL_BYTES // workload.size
        options = {"--count": last, "--tail": last, "--seconds": CONSUME_SECONDS_MAX}
        reads = [self._timed(workload, "consume", "consume", options) for _ in range(TAIL_READS)]
        return min(reads, key=lambda one: one.seconds)

    def _catch_up(self, workload: Workload) -> Measurement:
        stored = self._produce(workload).messages
        paced = {"--rate": workload.rate, "--seconds": 2 * self._plan.seconds}
        command = self._command("produce", workload.name, {**_options(workload), **paced})
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as sending:
            found = self._consume(workload, stored)
            if sending.wait(PATIENCE_SECONDS):
                raise Failed("the producer failed while messages were read")
        return found

    def _replay(self, workload: Workload) -> Measurement:
        frame = self._folder / "frame"
        frame.write_bytes(produce_frame(workload.name, a_batch(REPLAY_RECORDS, workload.size)))
        error_at = _ERROR_BEFORE_NAME + len(workload.name) + _ERROR_BEHIND_NAME
        stored_bytes_max = touching.stored_bytes(self._plan, workload)
        numbers = (error_at, REPLAY_IN_FLIGHT, self._plan.seconds, stored_bytes_max)
        words = [str(self._running.port), str(frame), *map(str, numbers)]
        self._touch(workload)
        watch = _Watch(self._running)
        found = call([str(fetched.driver("replay")), "replay", *words], self._plan.seconds)
        found["messages"] *= REPLAY_RECORDS
        found.setdefault("client_cpu_seconds", 0.0)
        return self._measurement(f"{workload.name}.produce", found, workload.size, watch)

    def _failover(self, workload: Workload) -> Measurement:
        """Kill the leader during sending; the seconds are those without an acknowledgement."""
        options = {"--seconds": FAILOVER_SECONDS, "--rate": workload.rate}
        command = self._command("pause", workload.name, {**_options(workload), **options})
        leader = self._system.leader(self._running, workload.name)
        watch = _Watch(self._running)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as sending:
            time.sleep(KILL_AFTER_SECONDS)
            leader.kill()
            try:
                said, complained = sending.communicate(timeout=PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                sending.kill()
                raise Failed(f"nothing was acknowledged for {PATIENCE_SECONDS} s") from None
        if sending.returncode:
            raise Failed(complained.strip())
        return self._measurement(f"{workload.name}.pause", json.loads(said), workload.size, watch)

    def _reader(self) -> str:
        """Return our own reader; it only understands what a C producer sends."""
        return self._variant.reader if fetched.is_compiled(self._variant.driver) else ""

    def _timed(
        self, workload: Workload, mode: str, side: str, options: Mapping[str, object]
    ) -> Measurement:
        reader = self._reader() if workload.is_in_place and mode == "consume" else ""
        words = {**_options(workload), **options}
        command = self._command(mode, workload.name, words, driver=reader)
        watch = _Watch(self._running)
        found = call(command, float(str(options["--seconds"])))
        return self._measurement(f"{workload.name}.{side}", found, workload.size, watch)

    def _measurement(
        self, figure: str, found: Mapping[str, Any], size: int, watch: "_Watch"
    ) -> Measurement:
        client = float(found["client_cpu_seconds"])
        cpu_seconds, others = watch.taken(client)
        return Measurement(
            figure=figure,
            variant=self._variant.name,
            round=self._round,
            messages=found["messages"],
            seconds=found["seconds"],
            message_bytes=size,
            cpu_seconds=cpu_seconds,
            client_cpu_seconds=client,
            resident_bytes=self._running.resident_bytes(),
            others_cpu_share=others,
            load=watch.load,
            first_seconds=found.get("first_seconds"),
            read=found.get("read"),
            histogram_ns=[(pair[0], pair[1]) for pair in found.get("histogram_ns", ())],
        )

    def _create_first(self, topic: str) -> None:
        """Create a topic; a cluster that has not formed yet refuses for a while."""
        deadline = time.monotonic() + CREATE_SECONDS_MAX
        while True:
            try:
                return self._create(topic, partitions=1)
            except Failed:
                if self._variant.brokers == 1 or time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_EVERY_SECONDS)

    def _create(self, topic: str, partitions: int) -> None:
        numbers = {"--partitions": partitions, "--replicas": self._variant.brokers}
        command = self._command("create", topic, numbers)
        for setting in self._variant.topic_settings:
            command += ["--config", setting]
        call(command)

    def _command(
        self, mode: str, topic: str, options: Mapping[str, object], driver: str = ""
    ) -> list[str]:
        fixed = {
            "--port": self._running.port,
            "--topic": topic,
            "--window": self._variant.window,
            "--kind": self._variant.kind,
        }
        words = [str(word) for pair in {**fixed, **options}.items() for word in pair]
        return [*fetched.driver_command(driver or self._variant.driver), mode, *words]


class _Watch:
    """The counters of a system and of the machine since its creation."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.load = machine.load()
        self._busy = machine.busy_seconds()
        self._cpu = running.cpu_seconds()
        self._start = time.perf_counter()

    def taken(self, client_cpu_seconds: float) -> tuple[float, float]:
        """Return the system's processor seconds, and the share of all cores that others used."""
        # Killed processes are no longer counted.
        cpu = max(0.0, self._running.cpu_seconds() - self._cpu)
        seconds = time.perf_counter() - self._start
        others = machine.busy_seconds() - self._busy - cpu - client_cpu_seconds
        return cpu, min(1.0, max(0.0, others / seconds / machine.cores()))


def _options(workload: Workload) -> dict[str, object]:
    """Return the driver options of a workload."""
    return {
        "--size": workload.size,
        "--batch": workload.batch_bytes,
        "--unbatched": int(workload.is_unbatched),
        "--linger": -1 if workload.linger_ms is None else workload.linger_ms,
        "--acks": workload.acks,
        "--compression": workload.compression,
        "--partitions": workload.partitions,
        "--consumers": workload.consumers,
    }
