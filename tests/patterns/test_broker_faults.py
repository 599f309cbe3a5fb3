"""Brokers die, are paused and are cut off at each step of every pattern."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafkaesque.patterns import (
    Delivery,
    RedriveSettings,
    RetryPlan,
    WorkerSettings,
    dead_letter_redrive,
    publish,
    redrive,
    reply,
    request,
    scatter,
    subscribe,
    table,
    worker,
)
from kafkaesque.patterns.committer import Committer
from kafkaesque.patterns.connection import make_topics
from kafkaesque.patterns.dead_letter import dead_headers, failure_of
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.letters import read_all
from kafkaesque.patterns.message import Message
from kafkaesque.patterns.sender import Sender
from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId
from tests.complaints import WITHOUT_LEADERS
from tests.patterns.waiting import SECONDS_MAX, letters, run_long, send_all, steps, until

pytestmark = [pytest.mark.compat, WITHOUT_LEADERS]

STEPS = ("handling", "before-copy", "after-copy", "before-commit", "after-commit")
GOOD = [f"good-{number}" for number in range(12)]
BAD = [f"bad-{number}" for number in range(3)]
SETTINGS = WorkerSettings(
    retries=RetryPlan(delays_ms=(10,)),
    limits=EngineSettings(concurrency=4, in_flight_max=20, commit_seconds=0.1),
)


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """Three brokers; the faults of a test are undone."""
    yield running
    running.heal()


@pytest.fixture
def bootstrap(cluster: Cluster) -> str:
    """Their addresses."""
    return cluster.bootstrap


class Once:
    """A fault that is injected the first time that it is requested."""

    def __init__(self, harm: Callable[[], None]) -> None:
        self._harm = harm
        self.is_done = False

    async def __call__(self) -> None:
        """Inject it, unless it was injected already."""
        if not self.is_done:
            self.is_done = True
            await asyncio.to_thread(self._harm)


class HarmingSender(Sender):
    """Injects the fault before or after the first message that it sends."""

    before: Once | None = None
    after: Once | None = None

    async def send(self, *words: Any, **options: Any) -> Any:
        """Send, and inject the fault."""
        if self.before is not None:
            await self.before()
        sent = await super().send(*words, **options)
        if self.after is not None:
            await self.after()
        return sent


class HarmingCommitter(Committer):
    """Injects the fault before or after the first non-empty commit."""

    before: Once | None = None
    after: Once | None = None

    async def _try(self, *words: Any) -> bool:
        if self.before is not None:
            await self.before()
        is_done = await super()._try(*words)
        if self.after is not None:
            await self.after()
        return is_done


def coordinator(cluster: Cluster, group: str) -> NodeId:
    """Return the coordinator of a group that has members."""
    while True:
        # A new client each time: librdkafka remembers a group's coordinator for as long as it is
        # asked, also one that says that it is not.
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        try:
            found = admin.describe_consumer_groups([group])[group].result(10).coordinator
        except KafkaException:
            continue  # it is just moving
        if found.id in cluster.nodes:
            return NodeId(found.id)


async def outlive(cluster: Cluster, topic: str, step: str, harm: Once) -> Counter[str]:
    """Run a worker while a fault is injected at a step; return how often each text was done."""
    done: Counter[str] = Counter()
    at = cluster.bootstrap

    async def handle(delivery: Delivery) -> None:
        if step == "handling" and sum(done.values()) == 3:
            await harm()
        if delivery.text.startswith("bad"):
            raise ValueError("bad")
        done[delivery.text] += 1

    one = worker(at, topic, handle, settings=SETTINGS)
    one._sender.__class__ = HarmingSender
    one._sender.before = harm if step == "before-copy" else None  # type: ignore[attr-defined]
    one._sender.after = harm if step == "after-copy" else None  # type: ignore[attr-defined]
    async with one:
        committer: Any = one._engine.committer
        committer.__class__ = HarmingCommitter
        committer.before = harm if step == "before-commit" else None
        committer.after = harm if step == "after-commit" else None
        await send_all(at, topic, *GOOD[:6], *BAD, *GOOD[6:], is_idempotent=True)
        await until(lambda: harm.is_done and len(done) == len(GOOD) and one.dead == len(BAD))
    return done


def check(cluster: Cluster, topic: str, done: Counter[str]) -> None:
    """Check that nothing is lost, repeated without bound, or both done and dead."""
    assert set(done) == set(GOOD)
    assert sum(done.values()) <= len(GOOD) + SETTINGS.limits.in_flight_max
    assert sorted(one.message.text for one in letters(cluster.bootstrap, topic)) == BAD


@pytest.mark.requirement("PAT-5")
@pytest.mark.parametrize("step", steps(STEPS, "after-copy"))
def test_a_worker_survives_the_leader_of_its_topic(cluster: Cluster, topic: str, step: str) -> None:
    harm = Once(lambda: cluster.kill(cluster.leader(topic)))
    check(cluster, topic, run_long(outlive(cluster, topic, step, harm)))


@pytest.mark.parametrize("step", steps(STEPS, "before-commit"))
def test_a_worker_survives_the_coordinator_of_its_group(
    cluster: Cluster, topic: str, step: str
) -> None:
    harm = Once(lambda: cluster.kill(coordinator(cluster, topic)))
    check(cluster, topic, run_long(outlive(cluster, topic, step, harm)))


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", ["pause", "cut"])
def test_a_worker_survives_a_leader_that_is_paused_or_cut_off(
    cluster: Cluster, topic: str, step: str, way: str
) -> None:
    def hurt() -> None:
        leader = cluster.leader(topic)
        cluster.pause(leader) if way == "pause" else cluster.isolate(leader)

    async def story() -> Counter[str]:
        harm = Once(hurt)
        working = asyncio.ensure_future(outlive(cluster, topic, step, harm))
        await until(lambda: harm.is_done or working.done())
        await asyncio.wait([working], timeout=5)
        await asyncio.to_thread(cluster.heal)
        return await working

    check(cluster, topic, run_long(story()))


@pytest.mark.requirement("PAT-3")
@pytest.mark.parametrize("who", steps(("requests", "replies", "coordinator"), "requests"))
def test_every_caller_gets_one_answer_when_a_broker_dies(
    cluster: Cluster, topic: str, who: str
) -> None:
    at = cluster.bootstrap
    asked: Counter[str] = Counter()

    async def story() -> list[bytes | None]:
        async def answer(delivery: Delivery) -> str:
            asked[delivery.text] += 1
            if len(asked) == 4:
                await harm()
            return delivery.text

        async with reply(at, topic, answer), request(at) as ask:

            def hurt() -> None:
                match who:
                    case "requests":
                        cluster.kill(cluster.leader(topic))
                    case "replies":
                        cluster.kill(cluster.leader(ask.reply_to))
                    case _:
                        cluster.kill(coordinator(cluster, topic))

            harm = Once(hurt)
            return await asyncio.gather(
                *(ask(topic, text, deadline_seconds=SECONDS_MAX) for text in GOOD),
                return_exceptions=False,
            )

    assert run_long(story()) == [text.encode() for text in GOOD]
    assert sum(asked.values()) <= 2 * len(GOOD)


@pytest.mark.long
@pytest.mark.requirement("PAT-4")
def test_a_scattered_request_is_gathered_when_a_broker_dies(cluster: Cluster, topic: str) -> None:
    at = cluster.bootstrap

    async def story() -> None:
        harm = Once(lambda: cluster.kill(cluster.leader(topic)))

        async def answer(delivery: Delivery) -> str:
            await harm()
            return delivery.text

        async with (
            reply(at, topic, answer, name="a"),
            reply(at, topic, answer, name="b"),
            scatter(at, len) as ask,
        ):
            gathered = await ask(topic, "x", workers=("a", "b"), deadline_seconds=SECONDS_MAX)
            assert (gathered.value, gathered.is_whole) == (2, True)

    run_long(story())


@pytest.mark.requirement("PAT-5")
@pytest.mark.parametrize("who", steps(("letters", "origin", "marks")))
def test_a_redrive_continues_when_a_broker_dies(
    cluster: Cluster, topic: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, dead = cluster.bootstrap, f"{topic}.dlq"
    monkeypatch.setattr(dead_letter_redrive, "MARK_EVERY", 10)
    monkeypatch.setattr(dead_letter_redrive, "_PROGRESS_EVERY", 1)
    wanted = [str(number) for number in range(60)]
    lost = Message(topic=topic, partition=0, offset=0, timestamp_ms=1, key=None, value=None)
    headers = dead_headers(lost, failure_of(ValueError()), attempts=1, group="g", now_ms=1)
    hurt: list[str] = []
    victims = {"letters": dead, "origin": topic, "marks": f"{dead}.redriven"}

    def watch(state: dead_letter_redrive.Redriven) -> None:
        if state.moved == 25 and not hurt:
            hurt.append(who)
            cluster.kill(cluster.leader(victims[who]))

    async def story() -> None:
        await send_all(at, dead, *wanted, headers=headers)
        await asyncio.to_thread(make_topics, at, {topic: {}})
        assert (await redrive(at, dead, RedriveSettings(), progress=watch)).moved == len(wanted)
        assert (await redrive(at, dead)).moved == 0

    run_long(story())
    assert hurt
    back = Counter(message.text for message in read_all(at, topic))
    assert set(back) == set(wanted)
    # A redrive's sender is not idempotent: what was in flight may be duplicated.
    assert sum(back.values()) <= len(wanted) + 3 * dead_letter_redrive.MARK_EVERY


@pytest.mark.requirement("PAT-2")
def test_subscriptions_and_tables_survive_the_leader_of_their_topic(
    cluster: Cluster, topic: str
) -> None:
    at, other = cluster.bootstrap, f"{topic}-table"

    async def story() -> None:
        async with (
            publish(at) as publisher,
            subscribe(at, topic) as subscription,
            table(at, other) as prices,
        ):
            for number, text in enumerate(GOOD):
                if number == 4:
                    await asyncio.to_thread(lambda: cluster.kill(cluster.leader(topic)))
                await publisher.send(topic, text, key="k")
                await prices.put(text, str(number))
            assert [(await anext(subscription)).text for _ in GOOD] == GOOD
            await prices.refresh()
            assert dict(prices) == {text.encode(): b"%d" % n for n, text in enumerate(GOOD)}

    run_long(story())
