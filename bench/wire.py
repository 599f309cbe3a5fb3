"""How long does it take to read a Produce request and write its response?

One partition, version 9 (the first with compact lengths), a batch of 1 KB. kio, whose reader is
compiled from Rust, does the same in the same run. The best of several rounds counts. Prints two
JSON lines.
"""

import io
import json
import timeit
from collections.abc import Callable

from kio.schema.produce.v9.request import ProduceRequest as KioRequest
from kio.schema.produce.v9.response import ProduceResponse as KioResponse
from kio.serial import entity_reader, entity_writer

from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

VERSION = 9
CALLS = 20_000
ROUNDS = 9


def request() -> bytes:
    """Return a request as producers send it, without its header."""
    partition = PartitionProduceData(index=3, records=bytes(1_024))
    topic = TopicProduceData(name="orders", partition_data=(partition,))
    return encode(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(topic,)), VERSION)


def answer() -> ProduceResponse:
    """Return the broker's response to a success."""
    partition = PartitionProduceResponse(
        index=3, error_code=0, base_offset=1_234_567, log_start_offset=0
    )
    topic = TopicProduceResponse(name="orders", partition_responses=(partition,))
    return ProduceResponse(responses=(topic,))


def best_us(candidates: list[Callable[[], object]]) -> list[float]:
    """Return the microseconds per call of each candidate, measured in turns."""
    rounds = [
        [timeit.timeit(candidate, number=CALLS) for candidate in candidates] for _ in range(ROUNDS)
    ]
    return [min(column) / CALLS * 1e6 for column in zip(*rounds, strict=True)]


def main() -> None:
    """Measure and print."""
    data, ours = request(), answer()
    read_kio, write_kio = entity_reader(KioRequest), entity_writer(KioResponse)
    theirs, _ = entity_reader(KioResponse)(encode(ours, VERSION), 0)

    def kio_encode() -> bytes:
        out = io.BytesIO()
        write_kio(out, theirs)
        return out.getvalue()

    assert kio_encode() == encode(ours, VERSION)
    figures = {
        "wire-parse-produce": (
            lambda: decode(ProduceRequest, VERSION, data),
            lambda: read_kio(data, 0),
        ),
        "wire-write-produce-answer": (lambda: encode(ours, VERSION), kio_encode),
    }
    for figure, candidates in figures.items():
        measured, reference = best_us(list(candidates))
        line = {"figure": figure, "measured": round(measured, 2), "unit": "us"}
        line |= {"ratio": round(measured / reference, 2), "kio": round(reference, 2)}
        print(json.dumps(line))


if __name__ == "__main__":
    main()
