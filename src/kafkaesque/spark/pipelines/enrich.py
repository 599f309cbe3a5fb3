"""Enriches orders with their products, and joins them with their payments.

    products (compacted) ──> table ─┐
    orders ─────────────────────────┴──> enriched orders; those of unknown products: dead letters
    orders, payments ──> orders that were paid in time

A product is used as it was when its order is read, so later price changes have no effect.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.spark.pipelines.blocks import (
    Job,
    Output,
    Place,
    dead_letters,
    each_batch,
    good,
    judged,
    read_topic,
    stream_out,
    timed,
    write_out,
    write_topic,
)
from kafkaesque.spark.pipelines.enrich_events import EnrichSettings
from kafkaesque.spark.pipelines.versions import TopicTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ORDER = "order string, product string, count int, at bigint"
_PRODUCT = "product string, name string, cents bigint"
_PAYMENT = "order string, cents bigint, at bigint"
_FAULTS = {
    "there is no order": "event.order is null",
    "the count is not above 0": "event.count is null or event.count < 1",
    "there is no time": "event.at is null or event.at <= 0",
}
_PAYMENT_FAULTS = {"the payment is not whole": "event.order is null or event.at is null"}


def jobs(spark: "SparkSession", place: Place, settings: EnrichSettings) -> list[Job]:
    """Prepare both queries; the topics must exist."""
    products = TopicTable(spark, place, settings.products_topic)
    out = Output(topic=settings.enriched_topic, key="order", table="enriched")

    def write(rows: "DataFrame", batch: int) -> None:
        enriched = with_products(rows, products.refreshed(batch)).persist()
        write_out(good(enriched), place, out, batch)
        write_topic(dead_letters(enriched), place, settings.dead_letter_topic)
        enriched.unpersist()

    orders = judged(read_topic(spark, place, settings.topic, query="enrich"), _ORDER, _FAULTS)
    as_paid = Output(topic=settings.paid_topic, key="order", table="paid")
    return [
        each_batch(orders, place, write, query="enrich"),
        stream_out(paid(spark, place, settings), place, as_paid, query="paid"),
    ]


def with_products(rows: "DataFrame", products: "DataFrame") -> "DataFrame":
    """Add name and price to each order; an order of an unknown product gets a reason."""
    told = F.from_json(F.col("value").cast("string"), _PRODUCT)
    known = products.select(F.col("key").cast("string").alias("sold"), told.alias("told"))
    joined = rows.join(F.broadcast(known), F.col("event.product") == F.col("sold"), "left")
    total = (F.col("told.cents") * F.col("event.count")).alias("cents")
    names = ("order", "product", "count", "at")
    event = F.struct(*[f"event.{name}" for name in names], F.col("told.name"), total)
    unknown = F.when(F.col("told").isNull(), "there is no such product")
    reason = F.coalesce("reason", unknown)
    return joined.withColumn("reason", reason).withColumn("event", event)


def paid(spark: "SparkSession", place: Place, settings: EnrichSettings) -> "DataFrame":
    """Return the orders that were paid in time: two streams, joined by order and time."""
    orders = judged(read_topic(spark, place, settings.topic, query="paid"), _ORDER, _FAULTS)
    payments = judged(
        read_topic(spark, place, settings.payments_topic, query="paid-payments"),
        _PAYMENT,
        _PAYMENT_FAULTS,
    )
    left = timed(good(orders), settings.lateness_s).alias("ordered")
    right = timed(good(payments), settings.lateness_s).alias("paid")
    within = F.expr(
        "ordered.order = paid.order and paid.time >= ordered.time and "
        f"paid.time <= ordered.time + interval {settings.payment_s} seconds"
    )
    columns = ("ordered.order", "ordered.product", "ordered.at", "paid.cents")
    return left.join(right, within).select(*columns, F.col("paid.at").alias("paid_at"))
