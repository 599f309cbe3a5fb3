"""Generates orders, products and payments from a seed: the events of the pipeline `enrich`."""

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kafkaesque.spark.pipelines.messages import Message, broken, is_broken
from kafkaesque.spark.pipelines.settings import PipelineSettings

_PRODUCTS = 40
_PACE_MS = 1_000
_PAID_SHARE = 0.8
_PAYMENT_MS = 120_000
_BROKEN = ('{"order":"o', '{"order":"o-1","product":"p-1","count":0,"at":1}', "[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichSettings(PipelineSettings):
    """The names of the topics, and the times."""

    topic: str = "orders"
    products_topic: str = "products"
    payments_topic: str = "payments"
    enriched_topic: str = "orders-enriched"
    paid_topic: str = "orders-paid"
    dead_letter_topic: str = "enrich-dead-letters"
    payment_s: int = 600
    """A payment counts if it is made within this time after its order."""
    lateness_s: int = 180
    """Orders and payments that arrive later than this after others are dropped."""

    @property
    def compacted(self) -> frozenset[str]:
        """The topic of products, in which the last record of a key counts."""
        return frozenset({self.products_topic})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order of a product."""

    order: str
    product: str
    count: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """The name and price of a product; without a name it is no longer sold."""

    product: str
    name: str | None
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment of an order."""

    order: str
    cents: int
    at: int


def generate(
    seed: int, count: int, start_ms: int, broken_share: float = 0.01
) -> Iterator[Message[Order | Product | Payment]]:
    """Yield all products, then orders with their payments; the same seed yields the same ones."""
    chance = random.Random(seed)
    yield from products(seed)
    at_ms = start_ms
    for number in range(count):
        at_ms += chance.randrange(_PACE_MS)
        if is_broken(chance, broken_share):
            yield broken(chance, "o-1", _BROKEN)
            continue
        name = f"o-{number}"
        product = f"p-{chance.randrange(_PRODUCTS + 1)}"  # the last one is not sold
        order = Order(order=name, product=product, count=chance.randrange(1, 5), at=at_ms)
        yield Message(key=name, value=json.dumps(asdict(order)), event=order)
        if chance.random() < _PAID_SHARE:
            paid_ms = at_ms + chance.randrange(_PAYMENT_MS)
            payment = Payment(order=name, cents=chance.randrange(100, 9_900), at=paid_ms)
            text = json.dumps(asdict(payment))
            yield Message(key=name, value=text, event=payment, to="payments_topic")


def products(seed: int) -> Iterator[Message[Order | Product | Payment]]:
    """Yield a record for each product; an even seed drops some, and each has its own prices."""
    chance = random.Random(seed)
    for number in range(_PRODUCTS):
        is_sold = seed % 2 == 1 or chance.random() < _PAID_SHARE
        key, cents = f"p-{number}", chance.randrange(100, 9_900)
        product = Product(product=key, name=f"Thing {number}" if is_sold else None, cents=cents)
        text = json.dumps(asdict(product)) if is_sold else None
        yield Message(key=key, value=text, event=product, to="products_topic")
