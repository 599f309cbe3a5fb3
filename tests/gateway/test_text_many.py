"""Thousands of connections at once: idle ones cost little, busy ones are all served."""

import asyncio
from pathlib import Path

from tests.gateway.text_clients import TextBroker, TextClient, text_broker

CONNECTIONS = 2_000
AT_ONCE = 200


async def connected(broker: TextBroker) -> list[TextClient]:
    clients: list[TextClient] = []
    while len(clients) < CONNECTIONS:
        clients += await asyncio.gather(*(broker.connect() for _ in range(AT_ONCE)))
    return clients


def test_two_thousand_connections_publish_and_none_has_a_task_afterwards(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            tasks = asyncio.all_tasks()
            clients = await connected(broker)
            await clients[0].ask("CRTP t 2")
            for number, client in enumerate(clients):
                client.type(f'PUBS t {{"Body":"{number}"}}')
            assert {await client.line() for client in clients} == {"Done"}
            await asyncio.sleep(0)
            assert asyncio.all_tasks() <= tasks
            (first,) = await clients[0].data("SUBS t g")
            assert await clients[0].data(f"CONS t {first} {CONNECTIONS // 2}") == []

    asyncio.run(go())


def test_a_record_is_pushed_to_hundreds_of_groups(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            clients = await asyncio.gather(*(broker.connect() for _ in range(AT_ONCE)))
            await clients[0].ask("CRTP t 1")
            for number, client in enumerate(clients):
                await client.data(f"PUSH t group-{number}")
            writer = await broker.connect()
            await writer.ask('PUBS t {"Body":"news"}')
            line = '{"Header":null,"Body":"news","Key":null,"Offset":0,"Partition":0}'
            assert {await client.line() for client in clients} == {line}

    asyncio.run(go())
