"""Commands typed at a running broker: their answers, their order, and the end of subscriptions."""

import asyncio
import json
from pathlib import Path

import pytest

from kafkaesque.config import BrokerConfig
from kafkaesque.server_config import TextLimits
from tests.gateway.text_clients import SECONDS_MAX, TextBroker, text_broker

SMALL = TextLimits(line_bytes_max=1_000, read_ahead_bytes=100)


async def until_free(broker: TextBroker) -> None:
    """Wait until the broker has noticed that all subscribers are gone."""
    async with asyncio.timeout(SECONDS_MAX):
        while len(broker.desk.subscriptions):  # noqa: ASYNC110 - clients get no notice
            await asyncio.sleep(0.001)


@pytest.mark.requirement("TXT-1")
@pytest.mark.requirement("TXT-2")
@pytest.mark.requirement("TXT-3")
def test_published_messages_are_consumed_in_the_documented_form(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            assert await client.ask("CRTP orders 1") == "Done"
            published = '{"Key":"7","Header":"h","Body":"two apples"}'
            assert await client.ask(f"PUBS orders {published}") == "Done"
            assert await client.ask('PUBS orders {"Body":{"n": 1}}') == "Done"
            (subscription,) = await client.data("SUBS orders shop")
            answer = await client.ask(f"CONS orders {subscription} 0")
            assert answer == (
                '{"Ok":true,"Data":[{"Header":"h","Body":"two apples","Key":"7","Offset":0},'
                '{"Header":null,"Body":"{\\"n\\":1}","Key":null,"Offset":1}]}'
            )
            assert await client.ask(f"CONS orders {subscription} 2") == '{"Ok":true,"Data":[]}'
            assert "outside the log, which holds [0, 2)" in await client.error(
                f"CONS orders {subscription} 3"
            )

    asyncio.run(go())


@pytest.mark.requirement("CORE-6")
def test_a_partition_has_one_subscriber_in_a_group_and_others_in_other_groups(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            anna, bert = await broker.connect(), await broker.connect()
            await anna.ask("CRTP t 3")
            assert len(await anna.data("SUBS t g")) == 1
            assert len(await bert.data("SUBS t g 9")) == 2
            assert "taken" in await anna.error("SUBS t g")
            assert len(await anna.data("SUBS t other 3")) == 3

    asyncio.run(go())


def test_a_subscription_belongs_to_its_connection_and_its_topic(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            anna, bert = await broker.connect(), await broker.connect()
            await anna.ask("CRTP t 1")
            await anna.ask("CRTP u 1")
            (held,) = await anna.data("SUBS t g")
            assert "no such subscription" in await bert.error(f"CONS t {held} 0")
            assert "another topic" in await anna.error(f"CONS u {held} 0")
            assert await anna.data(f"CONS t {held} 0") == []

    asyncio.run(go())


def test_goodbye_frees_the_partitions_before_it_is_answered(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            anna, bert = await broker.connect(), await broker.connect()
            await anna.ask("CRTP t 1")
            await anna.data("SUBS t g")
            assert await anna.ask("DISC") == "Bye"
            assert len(await bert.data("SUBS t g")) == 1
            assert await anna.is_closed()

    asyncio.run(go())


def test_a_lost_connection_frees_its_partitions(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            anna, bert = await broker.connect(), await broker.connect()
            await anna.ask("CRTP t 2")
            await anna.data("SUBS t g")
            await bert.data("SUBS t g")
            anna.writer.close()
            bert.writer.transport.abort()
            await until_free(broker)
            cora = await broker.connect()
            assert len(await cora.data("SUBS t g 2")) == 2

    asyncio.run(go())


def test_errors_are_one_line_each_and_the_connection_stays_open(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, config=BrokerConfig(auto_create_topics=False)) as broker:
            client = await broker.connect()
            assert "HELP" in await client.error("hello?")
            assert await client.error('PUBS nowhere {"Body":"x"}') == "there is no topic nowhere"
            assert await client.error("SUBS nowhere g") == "there is no topic nowhere"
            assert "letters, digits" in await client.error("CRTP ../x")
            assert "249" in await client.error("CRTP " + "x" * 250)
            assert await client.ask("CRTP t 1") == "Done"
            assert "already exists" in await client.error("CRTP t 1")
            assert "replicas" in await client.error("CRTP u 1 3")
            assert "no push is running" in await client.error("STOP")
            assert await client.data("LIST") == [{"Topic": "t", "Partitions": 1}]

    asyncio.run(go())


def test_publishing_creates_a_topic_only_where_the_broker_allows_it(tmp_path: Path) -> None:
    async def go() -> None:
        config = BrokerConfig(partitions_default=2)
        async with text_broker(tmp_path, config=config) as broker:
            client = await broker.connect()
            assert await client.ask('PUBS fresh {"Body":"x"}') == "Done"
            assert await client.data("TOPICS") == [{"Topic": "fresh", "Partitions": 2}]
            await client.error("SUBS other g")
            assert len(await client.data("LIST")) == 1

    asyncio.run(go())


def test_help_ends_with_an_empty_line(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            lines = [await client.ask("HELP")]
            while lines[-1]:
                lines.append(await client.line())
            words = [line.split()[0] for line in lines[:-1]]
            assert words == ["CRTP", "PUBS", "SUBS", "CONS", "PUSH", "LIST", "DISC"]
            assert "Ok" in await client.ask("LIST")

    asyncio.run(go())


def test_commands_sent_together_run_in_order(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            lines = ["CRTP t 1", 'PUBS t {"Body":"a"}', "", 'PUBS t {"Body":"b"}', "SUBS t g"]
            lines += ["CONS t s1 0", 'PUBS t {"Body":"c"}', "bad", 'PUBS t {"Body":"d"}']
            lines += ["CONS t s1 2", "DISC", "LIST"]
            client.type("\n".join(lines))
            answers = [await client.line() for _ in range(11 - 1)]
            assert [answer for answer in answers if answer == "Done"] == ["Done"] * 5
            bodies = [
                [record["Body"] for record in json.loads(answers[place])["Data"]]
                for place in (4, 8)
            ]
            assert bodies == [["a", "b"], ["c", "d"]]
            assert answers[9] == "Bye"
            assert await client.is_closed()

    asyncio.run(go())


def test_commands_before_the_end_of_file_are_run_and_answered(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            client.writer.write(b'PUBS t {"Body":"x"}\nLIST\nCRTP half')
            client.writer.write_eof()
            assert await client.line() == "Done"
            assert await client.line() == '{"Ok":true,"Data":[{"Topic":"t","Partitions":4}]}'
            assert await client.is_closed()

    asyncio.run(go())


def test_a_line_that_is_too_long_is_answered_once_and_the_next_one_runs(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, limits=SMALL) as broker:
            client = await broker.connect()
            client.writer.write(b"PUBS t " + b"x" * 1_000_000 + b"\r\nLIST\r\n")
            assert "1000 bytes" in await client.line()
            assert await client.line() == '{"Ok":true,"Data":[]}'

    asyncio.run(go())


def test_64_mb_without_a_newline_do_not_grow_the_broker(tmp_path: Path) -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            before = resident_bytes()
            for _ in range(64):
                client.writer.write(b"x" * (1 << 20))
                await client.writer.drain()
            assert "skipped" in await client.line()
            assert "Ok" in await client.ask("\r\nLIST")
            assert resident_bytes() - before < 24 << 20

    asyncio.run(go())


def test_telnet_bytes_are_not_part_of_any_line(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            client.writer.write(b"\xff\xfd\x03\xff\xfb\x18LI\xff\xf1ST\r\0")
            async with asyncio.timeout(SECONDS_MAX):
                assert await client.reader.readexactly(6) == b"\xff\xfc\x03\xff\xfe\x18"
            assert await client.line() == '{"Ok":true,"Data":[]}'

    asyncio.run(go())


@pytest.mark.parametrize("noise", [b"\xff\xf1" * 5_000, b"POST / HTTP/1.1\r\nHost: x\r\n"])
def test_a_flood_and_a_browser_are_answered_once_and_disconnected(
    tmp_path: Path, noise: bytes
) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            client.writer.write(noise + b"\r\nCRTP evil\r\n")
            assert '"Ok":false' in await client.line()
            assert await client.is_closed()
            assert await (await broker.connect()).data("LIST") == []

    asyncio.run(go())


def test_nothing_that_a_client_types_reaches_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            forged = "x\rERROR forged=1"
            sentence = await client.ask(f"CRTP {forged}")
            assert "\r" not in sentence
            await client.ask(forged)
            await client.ask(f'PUBS "{forged}" {{"Body":"x"}}')

    asyncio.run(go())
    assert "forged" not in caplog.text


def test_a_client_that_does_not_read_answers_is_not_read_from(tmp_path: Path) -> None:
    async def go() -> None:
        limits = TextLimits(write_buffer_bytes=1_000, read_ahead_bytes=1_000)
        async with text_broker(tmp_path, limits=limits) as broker:
            client = await broker.connect()
            client.writer.transport.set_write_buffer_limits(high=0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    while True:  # ends when the sockets' buffers are full both ways
                        client.writer.write(b"HELP\n" * 10_000)
                        await client.writer.drain()
            assert await (await broker.connect()).data("LIST") == []
            client.writer.transport.abort()

    asyncio.run(go())
