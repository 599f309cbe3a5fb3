"""Replaces the C driver of Kafka's protocol if it cannot be compiled.

It takes the same arguments and prints the same JSON. Producers run in several processes, because
one alone would measure Python; readers and latencies use one. If it is slower than the broker, the
report shows it: the client is named with every system.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import confluent_kafka

from kafkaesque.cli.bench_runs import Load, Outcome, follow, read, send
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import EARLIEST, LATEST
from kafkaesque.testing.process import HOST

PROCESSES = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one mode and print its result."""
    options = _options(arguments)
    bootstrap = f"{options.host}:{options.port}"
    if options.mode == "create":
        settings = dict(pair.split("=", 1) for pair in options.config)
        with Admin(bootstrap) as admin:
            admin.topics.create(
                options.topic,
                partitions=options.partitions,
                replicas=options.replicas,
                settings=settings,
            )
        print(json.dumps({"client": _client(1)}))
        return 0
    processes = 1
    match options.mode:
        case "produce":
            processes = 1 if options.count == 1 else PROCESSES
            outcome = _send(bootstrap, _load(options), processes)
        case "consume":
            with Admin(bootstrap) as admin:
                places = admin.topics.describe(options.topic).places
                starts = admin.topics.offsets(places, EARLIEST)
                ends = admin.topics.offsets(places, LATEST)
            if options.tail:
                starts = {place: max(starts[place], ends[place] - options.tail) for place in ends}
            seconds, count = options.seconds, options.count
            outcome = read(bootstrap, starts, ends, seconds=seconds, count=count)
        case "pause":
            outcome = _pause(bootstrap, options)
        case _:
            with Admin(bootstrap) as admin:
                places = admin.topics.describe(options.topic).places
                ends = admin.topics.offsets(places, LATEST)
            outcome = follow(bootstrap, _load(options), ends)
    print(json.dumps(_printed(outcome, processes)))
    return 0


def _pause(bootstrap: str, options: argparse.Namespace) -> Outcome:
    """Send messages one by one; the seconds are the longest time between acknowledgements."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    data, messages, longest = b"x" * options.size, 0, 0.0
    begun = last = 0.0
    while last - begun <= options.seconds:
        producer.produce(options.topic, data)
        producer.flush()
        now = time.perf_counter()
        if messages:  # finding the leader is not a pause
            longest = max(longest, now - last)
        else:
            begun = now
        last, messages = now, messages + 1
        time.sleep(1 / options.rate)
    return Outcome(messages=messages, message_bytes=options.size * messages, seconds=longest)


def _load(options: argparse.Namespace) -> Load:
    settings: dict[str, str | int] = {"acks": options.acks, "compression.type": options.compression}
    if options.batch:
        settings |= {"batch.size": options.batch, "batch.num.messages": 1_000_000}
    if options.unbatched:
        settings |= {"batch.num.messages": 1, "linger.ms": 0}
    if options.linger >= 0:
        settings |= {"linger.ms": str(options.linger)}
    return Load(
        topic=options.topic,
        size=options.size,
        seconds=options.seconds,
        count=options.count,
        rate=options.rate or None,
        settings=settings,
    )


def _send(bootstrap: str, load: Load, processes: int) -> Outcome:
    if processes == 1 or load.rate is not None:
        return send(bootstrap, load)
    share = load if load.count is None else replace(load, count=-(-load.count // processes))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        found = pool.starmap(send, [(bootstrap, share)] * processes)
    return Outcome(
        messages=sum(one.messages for one in found),
        message_bytes=sum(one.message_bytes for one in found),
        seconds=max(one.seconds for one in found),
    )


def _printed(outcome: Outcome, processes: int) -> dict[str, object]:
    times = os.times()
    pairs = [] if outcome.latencies is None else outcome.latencies.pairs()
    return {
        "messages": outcome.messages,
        "seconds": outcome.seconds,
        "histogram_ns": pairs,
        "client_cpu_seconds": times.user + times.system + times.children_user,
        "client": _client(processes),
    }


def _client(processes: int) -> str:
    version = confluent_kafka.version()
    text = version if isinstance(version, str) else version[0]
    return f"confluent-kafka {text}, Python, {processes} processes"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("create", "produce", "consume", "latency", "pause"))
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--topic", default="field")
    parser.add_argument("--acks", default="all")
    parser.add_argument("--compression", default="none")
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--kind", help="ignored")
    parser.add_argument("--count", type=int)
    for name in ("port", "size", "batch", "unbatched", "tail", "window"):
        parser.add_argument(f"--{name}", type=int, default=100 if name == "size" else 0)
    for name in ("partitions", "replicas", "consumers"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--linger", type=float, default=-1.0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
