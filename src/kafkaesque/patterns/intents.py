"""What a worker is about to do with failed messages, in the metadata of its commits.

A failed message is copied to a retry topic or to the dead-letter topic, and only then left behind.
A worker that dies in between would try it again, and might succeed with a message that is a dead
letter already. So it notes its intent first, with the group's offset: where the copy goes, and from
which offset on it will be found there. Who takes over the partition looks, copies if need be, and
never tries the message again.

    kafkaesque1 <offset>:<tier>:<partition>:<from>,…

Tier 0 is the dead-letter topic, others are retry topics. Text of another form is no intent.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kafkaesque.types import Offset

INTENTS_MAX = 48
"""Per partition: they fit, with numbers of any size, into the 4,096 bytes that Kafka allows."""

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
    """Return the intents as the metadata of a commit; none is no text."""
    assert len(intents) <= INTENTS_MAX
    if not intents:
        return ""
    rows = (f"{at}:{one.tier}:{one.partition}:{one.start}" for at, one in sorted(intents.items()))
    return "kafkaesque1 " + ",".join(rows)


def decode(text: str | None) -> dict[Offset, Intent]:
    """Read the metadata of a commit; what is not ours holds no intents."""
    if not text or not _FORM.fullmatch(text):
        return {}
    found = (tuple(map(int, row)) for row in _ONE.findall(text))
    return {
        offset: Intent(tier=tier, partition=partition, start=start)
        for offset, tier, partition, start in found
    }
