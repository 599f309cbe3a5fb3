"""The settings of a pipeline: typed, with defaults, and set by `name=value`."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kafkaesque.spark.errors import BadOption

_TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """The base of all pipelines' settings: fields `topic` or `..._topic` name topics."""

    topic: str = ""

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic that must exist before it runs, with the one that it reads first."""
        names = [one.name for one in dataclasses.fields(self)]
        return tuple(
            getattr(self, name) for name in names if name == _TOPIC or name.endswith(f"_{_TOPIC}")
        )

    @property
    def compacted(self) -> frozenset[str]:
        """The topics in which only the last record of a key counts."""
        return frozenset()


S = TypeVar("S", bound=PipelineSettings)


def parse_settings(kind: type[S], words: Sequence[str]) -> S:
    """Return the settings with those of `words` (`name=value`) set; raises BadOption."""
    fields = {one.name: one for one in dataclasses.fields(kind)}
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in fields:
            raise BadOption(f"{word!r} sets nothing: the settings are {', '.join(sorted(fields))}")
        given[name] = _value(name, text, type(fields[name].default))
    return kind(**given)


def _value(name: str, text: str, kind: type[object]) -> object:
    if kind is str:
        return text
    assert kind in (int, float), "settings are texts and numbers"
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        raise BadOption(f"{name} is {text!r}, but must be a number") from None
