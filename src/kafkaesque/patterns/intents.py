"""What a worker is about to do with failed messages, kept in the metadata of its commits.

A failed message is copied to a retry topic or the dead-letter topic before its offset is committed.
If the worker crashed in between, its successor would retry the message, which might succeed
although it is already a dead letter. So the worker first records its intent with the group's
offset: where the copy goes, and from which offset it will be found there. The partition's next
owner looks for the copy, makes it if it is missing, and never retries the message.

    kafkaesque1 <offset>:<tier>:<partition>:<from>,…

Tier 0 is the dead-letter topic, others are retry topics. Other text is not an intent.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kafkaesque.types import Offset

INTENTS_MAX = 48
"""Per partition: with numbers of any size they fit into the 4,096 bytes that Kafka allows."""

_FORM = re.compile(r"kafkaesque1 (\d{1,19}:\d{1,2}:\d{1,10}:\d{1,19}(?:,(?=\d))?){1,48}")
_ONE = re.compile(r"(\d+):(\d+):(\d+):(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """Where the copy of a failed message goes."""

    tier: int
    partition: int
    start: Offset
    """The end of that partition before the copy was sent."""


def encode(intents: Mapping[Offset, Intent]) -> str:
    """Return the intents as the metadata of a commit; empty if there are none."""
    assert len(intents) <= INTENTS_MAX
    if not intents:
        return ""
    rows = (f"{at}:{one.tier}:{one.partition}:{one.start}" for at, one in sorted(intents.items()))
    return "kafkaesque1 " + ",".join(rows)


def decode(text: str | None) -> dict[Offset, Intent]:
    """Read the metadata of a commit; foreign metadata holds no intents."""
    if not text or not _FORM.fullmatch(text):
        return {}
    found = (tuple(map(int, row)) for row in _ONE.findall(text))
    return {
        offset: Intent(tier=tier, partition=partition, start=start)
        for offset, tier, partition, start in found
    }
