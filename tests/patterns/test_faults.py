"""Workers, responders and redrives die at each step: nothing is lost or answered twice."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkaesque.patterns import Delivery, reply, request, worker
from kafkaesque.patterns.dead_letter import dead_headers, failure_of
from kafkaesque.patterns.letters import read_all
from kafkaesque.patterns.message import Message
from kafkaesque.testing import Broker, Cluster
from tests.apache_kafka import apache_kafka
from tests.complaints import WITHOUT_LEADERS
from tests.patterns.dying import MARK_EVERY, REDRIVE_STEPS, SETTINGS, STEPS
from tests.patterns.waiting import QUICK, SECONDS_MAX, letters, run, send_all, steps, until

pytestmark = [pytest.mark.compat, WITHOUT_LEADERS]

GOOD = [f"good-{number}" for number in range(12)]
BAD = [f"bad-{number}" for number in range(3)]


@pytest.fixture(
    scope="module", params=["cluster", pytest.param("apache-kafka", marks=pytest.mark.long)]
)
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of three brokers of ours, and Apache Kafka where it is available."""
    if request.param == "apache-kafka":
        with apache_kafka() as address:
            yield address
    else:
        with Cluster(3) as cluster:
            yield cluster.bootstrap


@contextmanager
def process(
    kind: str, bootstrap: str, topic: str, step: str, journal: Path
) -> Iterator["subprocess.Popen[str]"]:
    """Run a worker or a responder beside the test."""
    words = [sys.executable, "-m", "tests.patterns.dying", kind, bootstrap, topic, step]
    with subprocess.Popen([*words, str(journal)], stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.requirement("PAT-5")
@pytest.mark.parametrize("step", steps(STEPS, "before-copy", "after-copy"))
def test_a_worker_that_dies_loses_nothing_and_buries_nothing_twice(
    bootstrap: str, topic: str, tmp_path: Path, step: str
) -> None:
    journal = tmp_path / "journal"
    journal.touch()

    def seen() -> Counter[str]:
        return Counter(journal.read_text().splitlines())

    def buried() -> list[str]:
        return sorted(letter.message.text for letter in letters(bootstrap, topic))

    async def story() -> None:
        mixed = [*GOOD[:4], BAD[0], *GOOD[4:8], BAD[1], *GOOD[8:], BAD[2]]
        await send_all(bootstrap, topic, *mixed)
        with process("worker", bootstrap, topic, step, journal) as dying:
            assert await asyncio.to_thread(dying.wait) == -signal.SIGKILL
        with process("worker", bootstrap, topic, "none", journal):
            await until(lambda: {f"{text} 1" for text in GOOD} <= seen().keys())
            await until(lambda: {f"{text} 2" for text in BAD} <= seen().keys())
            while len(await asyncio.to_thread(buried)) < len(BAD):
                pass

    run(story())
    assert buried() == BAD, "each bad message is buried once, and no good one"
    again = sum(count - 1 for count in seen().values())
    assert again <= SETTINGS.limits.in_flight_max
    if step in ("before-copy", "after-copy"):
        # An attempt that was seen to fail is never repeated, so it cannot succeed after all.
        assert sum(seen()[f"{text} 1"] for text in BAD) <= len(BAD) + 2


@pytest.mark.requirement("PAT-5")
@pytest.mark.parametrize("step", steps(STEPS, "before-copy", "after-copy"))
def test_a_message_is_done_or_dead_and_never_both(
    bootstrap: str, topic: str, tmp_path: Path, step: str
) -> None:
    journal = tmp_path / "journal"
    journal.touch()

    def done() -> set[str]:
        return {line.split()[0] for line in journal.read_text().splitlines()}

    def buried() -> list[str]:
        return sorted(letter.message.text for letter in letters(bootstrap, topic))

    async def story() -> None:
        await send_all(bootstrap, topic, *BAD, *GOOD)
        with process("strict", bootstrap, topic, step, journal) as dying:
            assert await asyncio.to_thread(dying.wait) == -signal.SIGKILL
        # Whatever the first one failed at, the second one could do.
        with process("strict", bootstrap, topic, "mended", journal):
            while len(done()) + len(await asyncio.to_thread(buried)) < len([*BAD, *GOOD]):
                pass

    run(story())
    assert sorted([*done(), *buried()]) == sorted([*BAD, *GOOD])


@pytest.mark.requirement("PAT-5")
@pytest.mark.parametrize("step", steps(REDRIVE_STEPS, "sending"))
def test_a_redrive_that_dies_is_continued_where_it_was(
    bootstrap: str, topic: str, tmp_path: Path, step: str
) -> None:
    dead = f"{topic}.dlq"
    wanted = [str(number) for number in range(60)]
    lost = Message(topic=topic, partition=0, offset=0, timestamp_ms=1, key=None, value=None)
    headers = dead_headers(lost, failure_of(ValueError()), attempts=1, group="g", now_ms=1)
    run(send_all(bootstrap, dead, *wanted, headers=headers))

    def go(step: str) -> int:
        with process("redrive", bootstrap, dead, step, tmp_path) as one:
            return one.wait()

    def back() -> list[str]:
        return sorted(message.text for message in read_all(bootstrap, topic))

    assert go(step) == -signal.SIGKILL
    assert go("none") == 0
    after = back()
    assert set(after) == set(wanted)
    assert len(after) <= len(wanted) + 4 * MARK_EVERY
    assert go("none") == 0
    assert back() == after, "what was sent back is not sent again"


@pytest.mark.requirement("PAT-3")
@pytest.mark.parametrize("step", steps(STEPS, "after-copy"))
def test_a_responder_that_dies_is_replaced_and_each_caller_gets_one_answer(
    bootstrap: str, topic: str, tmp_path: Path, step: str
) -> None:
    journal = tmp_path / "journal"

    async def story() -> list[bytes | None]:
        async with request(bootstrap) as ask:
            async with asyncio.TaskGroup() as asking:
                asked = [
                    asking.create_task(ask(topic, text, deadline_seconds=SECONDS_MAX))
                    for text in GOOD
                ]
                with process("responder", bootstrap, topic, step, journal) as dying:
                    assert await asyncio.to_thread(dying.wait) == -signal.SIGKILL
                with process("responder", bootstrap, topic, "none", journal):
                    await asyncio.wait(asked)
            return [one.result() for one in asked]

    assert run(story()) == [f"answer to {text}".encode() for text in GOOD]


def test_workers_and_requests_survive_a_restart_of_the_broker(tmp_path: Path) -> None:
    done: Counter[str] = Counter()

    async def take(delivery: Delivery) -> None:
        done[delivery.text] += 1

    async def answer(delivery: Delivery) -> str:
        return delivery.text

    async def story(broker: Broker) -> None:
        at = broker.bootstrap
        async with (
            worker(at, "work", take, settings=QUICK),
            reply(at, "ask", answer),
            request(at) as ask,
        ):
            await send_all(at, "work", *GOOD[:6])
            await until(lambda: len(done) == 6)
            assert await ask("ask", "before") == b"before"
            await asyncio.to_thread(broker.stop)
            waiting = asyncio.ensure_future(ask("ask", "meanwhile", deadline_seconds=SECONDS_MAX))
            await asyncio.sleep(0)
            await asyncio.to_thread(broker.start)
            assert await waiting == b"meanwhile"
            await send_all(at, "work", *GOOD[6:])
            await until(lambda: len(done) == len(GOOD))

    with Broker(tmp_path / "data") as broker:
        run(story(broker))
    assert sum(done.values()) <= len(GOOD) + QUICK.limits.in_flight_max
