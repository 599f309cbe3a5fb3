"""Shared code of the examples: a broker, unless one is given, and a check at the end."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing import Broker

SECONDS_MAX = 60


def tell(story: Callable[[str], Awaitable[bool]]) -> None:
    """Run a story against the broker of the command line, or a new one; exit 1 if it fails."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with nullcontext() if given else Broker() as broker:
        bootstrap = given or (broker.bootstrap if broker else "")
        is_right = asyncio.run(asyncio.wait_for(story(bootstrap), SECONDS_MAX))
    sys.stdout.write(f"{'All is as it should be.' if is_right else 'Something is WRONG.'}\n")
    sys.exit(0 if is_right else 1)


def create(bootstrap: str, *topics: str) -> None:
    """Create topics with one partition each, so that all records have one order."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1) for topic in topics]).values():
        made.result(SECONDS_MAX)


def start_at_the_beginning(bootstrap: str, group: str) -> None:
    """Let a share group read its topics from their beginning; its own default is their end."""
    change = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(SECONDS_MAX)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; the story's time limit ends the wait."""
    while not condition():  # noqa: ASYNC110 - what is waited for is another program's doing
        await asyncio.sleep(0.02)
