"""Products that are seen together more often than by chance, and what to suggest.

The lift of two products is how often they were seen in one visit, divided by how often they would
be if they were independent. The batch counts the whole topic; the stream keeps its counts and adds
new views; both get the same result.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.pipelines.blocks import (
    Done,
    Job,
    Output,
    Place,
    dead_letters,
    each_batch,
    good,
    judged,
    read_topic,
    read_whole,
    write_out,
    write_topic,
)
from kafkaesque.spark.pipelines.suggestions_events import SuggestionsSettings
from kafkaesque.spark.pipelines.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "visit string, product string"
_FAULTS = {
    "there is no visit": "event.visit is null or event.visit = ''",
    "there is no product": "event.product is null or event.product = ''",
}
_SEEN = "visit string, product string"
_PAIRS = "product string, other string, visits bigint"


def jobs(spark: "SparkSession", place: Place, settings: SuggestionsSettings) -> list[Job]:
    """Prepare the stream, or the batch query; the topics must exist."""
    if settings.mode not in ("stream", "batch"):
        raise BadOption(f"mode is {settings.mode!r}, but must be stream or batch")
    out = Output(topic=settings.suggestions_topic, key="product")
    if settings.mode == "batch":
        return [lambda: _count_all(spark, place, settings, out)]
    seen_table = Versions(spark, place.table("seen"))
    pair_table = Versions(spark, place.table("pairs"))

    def write(rows: "DataFrame", batch: int) -> None:
        write_topic(dead_letters(rows), place, settings.dead_letter_topic)
        seen = seen_table.read(seen_table.before(batch), _SEEN)
        fresh = good(rows).distinct().join(seen, ["visit", "product"], "left_anti").persist()
        old = pair_table.read(pair_table.before(batch), _PAIRS)
        added = old.unionByName(new_pairs(seen, fresh))
        pairs = added.groupBy("product", "other").agg(F.sum("visits").alias("visits"))
        seen_table.write(seen.unionByName(fresh), batch)
        pair_table.write(pairs, batch)
        found = suggested(seen_table.newest(), pair_table.newest(), settings)
        Versions(spark, place.table("suggestions")).write(found, batch)
        write_out(found, place, out, batch)
        fresh.unpersist()

    views = judged(read_topic(spark, place, settings.topic, query="views"), _SCHEMA, _FAULTS)
    return [each_batch(views, place, write, query="views")]


def new_pairs(seen: "DataFrame", fresh: "DataFrame") -> "DataFrame":
    """Return, for each two products, in how many visits they are newly together."""
    known = fresh.withColumn("is_new", F.lit(1)).unionByName(seen.withColumn("is_new", F.lit(0)))
    other = known.select("visit", F.col("product").alias("other"), F.col("is_new").alias("is_too"))
    together = known.join(other, "visit").where("product != other and is_new + is_too > 0")
    return together.groupBy("product", "other").agg(F.count("*").alias("visits"))


def suggested(seen: "DataFrame", pairs: "DataFrame", settings: SuggestionsSettings) -> "DataFrame":
    """Return, for each product, those with the highest lift, best first."""
    visits = seen.agg(F.countDistinct("visit").alias("all_visits"))
    alone = seen.groupBy("product").agg(F.count("*").alias("own"))
    others = alone.select(F.col("product").alias("other"), F.col("own").alias("of_other"))
    lift = F.col("visits") * F.col("all_visits") / (F.col("own") * F.col("of_other"))
    scored = pairs.where(F.col("visits") >= settings.visits_min).crossJoin(F.broadcast(visits))
    scored = scored.join(alone, "product").join(others, "other").withColumn("lift", lift)
    order = Window.partitionBy("product").orderBy(F.desc("lift"), F.desc("visits"), "other")
    best = scored.withColumn("place", F.row_number().over(order))
    one = F.struct("place", "other", "lift", "visits")
    listed = best.where(F.col("place") <= settings.top).groupBy("product")
    return listed.agg(F.array_sort(F.collect_list(one)).alias("suggestions"))


def _count_all(
    spark: "SparkSession", place: Place, settings: SuggestionsSettings, out: Output
) -> Done:
    rows = judged(read_whole(spark, place, settings.topic), _SCHEMA, _FAULTS).persist()
    count = rows.count()
    write_topic(dead_letters(rows), place, settings.dead_letter_topic)
    views = good(rows).distinct().persist()
    found = suggested(views, new_pairs(views.limit(0), views), settings)
    found.write.mode("overwrite").parquet(str(place.table("nightly")))
    write_out(found, place, out, batch=0)
    views.unpersist()
    rows.unpersist()
    return Done(name="suggestions", rows=count)
