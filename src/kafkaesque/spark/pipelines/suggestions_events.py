"""Generates visitors who look at products from a seed: the views of `suggestions`."""

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kafkaesque.spark.pipelines.messages import Message, broken, is_broken
from kafkaesque.spark.pipelines.settings import PipelineSettings

_PRODUCTS = 30
_TASTES = 5
_VIEWS_OF_A_VISIT = 6
_AT_ONCE = 10
_BROKEN = ('{"visit":"v', '{"visit":"v-1","product":""}', '{"product":"p-1"}')


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionsSettings(PipelineSettings):
    """The names of the topics, and what is suggested."""

    topic: str = "views"
    suggestions_topic: str = "suggestions"
    dead_letter_topic: str = "suggestions-dead-letters"
    mode: str = "stream"
    """`stream` continues from its counts, `batch` counts the whole topic from scratch."""
    top: int = 5
    """Suggestions per product."""
    visits_min: int = 2
    """Minimum number of visits with both products."""

    @property
    def compacted(self) -> frozenset[str]:
        """The topic of suggestions, in which the last record of a key counts."""
        return frozenset({self.suggestions_topic})


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view of a product."""

    visit: str
    product: str


def generate(
    seed: int, count: int, _start_ms: int, broken_share: float = 0.01
) -> Iterator[Message[View]]:
    """Yield views of visitors who each prefer some products; equal seeds yield equal views."""
    chance = random.Random(seed)
    for number in range(count):
        if is_broken(chance, broken_share):
            yield broken(chance, "v-1", _BROKEN)
            continue
        visit = number // (_VIEWS_OF_A_VISIT * _AT_ONCE) * _AT_ONCE + chance.randrange(_AT_ONCE)
        likes = chance.random() < 0.7
        product = chance.randrange(_PRODUCTS)
        product = product // _TASTES * _TASTES + visit % _TASTES if likes else product
        view = View(visit=f"v-{visit}", product=f"p-{product}")
        yield Message(key=view.visit, value=json.dumps(asdict(view)), event=view)
