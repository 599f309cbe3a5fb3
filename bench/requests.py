"""How many requests per second does one connection carry, and what does each cost?

The broker runs in its own process, on uvloop. A client writes prebuilt requests, many at a time,
and counts the responses: ApiVersions, which only passes through, and Produce of one batch with
acks=1, and with acks=all, whose batches are gathered and written together. On a busy machine the
broker's processor time per request says more than the rate.
Prints one JSON line for each kind of request.
"""

import json
import time

from bench.serving import Served, a_batch, frame_of, produce_frame, receive, serving
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest

SECONDS = 3.0
TOPIC = "bench"
ACKS_LEADER = 1
ACKS_ALL = -1


def rate(broker: Served, request: bytes, window: int) -> tuple[float, float]:
    """Return requests per second with `window` in flight, and the broker's us for each."""
    with broker.connect() as stream:
        stream.sendall(request)
        answer_bytes = 4 + len(receive(stream))
        burst = request * window
        done, start, taken = 0, time.perf_counter(), broker.cpu_seconds()
        while time.perf_counter() - start < SECONDS:
            stream.sendall(burst)
            left = answer_bytes * window
            while left:
                left -= len(stream.recv(left))
            done += window
        taken = broker.cpu_seconds() - taken
        return done / (time.perf_counter() - start), 1e6 * taken / done


def main() -> None:
    """Start a broker, measure, print."""
    with serving() as broker:
        broker.create_topic(TOPIC, {"flush.policy": "os"})
        runs = (
            ("requests-empty", frame_of(ApiVersionsRequest(), 0), 50),
            ("requests-100b", produce_frame(TOPIC, a_batch(1, 100), ACKS_LEADER), 50),
            ("requests-100b-all", produce_frame(TOPIC, a_batch(1, 100), ACKS_ALL), 50),
            ("requests-16k", produce_frame(TOPIC, a_batch(1, 16_000), ACKS_LEADER), 10),
            ("requests-16k-all", produce_frame(TOPIC, a_batch(1, 16_000), ACKS_ALL), 10),
            ("requests-1m", produce_frame(TOPIC, a_batch(1, 1_000_000), ACKS_LEADER), 1),
        )
        for name, request, window in runs:
            measured, taken_us = rate(broker, request, window)
            line = {
                "requests": name,
                "measured": round(measured),
                "unit": "requests/s",
                "broker_us": round(taken_us, 1),
                "mb_per_s": round(measured * len(request) / 1e6),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
