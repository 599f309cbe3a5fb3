"""Generates a small database and its changes from a seed: the log of `commitlog`."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafkaesque.spark.pipelines.messages import Message, broken, is_broken
from kafkaesque.spark.pipelines.settings import PipelineSettings

_TABLES = ("accounts", "customers")
_ROWS = 60
_BROKEN = ('{"op":"upsert"', '{"op":"truncate","table":"accounts","id":"1"}', "[1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitlogSettings(PipelineSettings):
    """The names of the topics, and the point at which the state is rebuilt."""

    topic: str = "commitlog"
    dead_letter_topic: str = "commitlog-dead-letters"
    until_offsets: str = ""
    """Where to stop, exclusive, as `{"0":10,"1":25}`; empty means the end."""
    until_ms: int = 0
    """Stop at the first record at or after this time; 0 means the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The new contents of one row; None if it was deleted."""

    table: str
    id: str
    row: Mapping[str, object] | None


def generate(
    seed: int, count: int, _start_ms: int, broken_share: float = 0.01
) -> Iterator[Message[Change]]:
    """Yield changes in the order of the database; the same seed yields the same changes."""
    chance = random.Random(seed)
    for number in range(count):
        if is_broken(chance, broken_share):
            yield broken(chance, "accounts/1", _BROKEN)
            continue
        table, name = chance.choice(_TABLES), str(chance.randrange(_ROWS))
        is_gone = chance.random() < 0.15
        row = None if is_gone else {"name": f"n{chance.randrange(9)}", "balance": number}
        change = Change(table=table, id=name, row=row)
        said: dict[str, object] = {"op": "delete" if is_gone else "upsert", "table": table}
        said |= {"id": name, "row": row}
        yield Message(key=f"{table}/{name}", value=json.dumps(said), event=change)
