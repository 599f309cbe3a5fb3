"""The text around the options on the page of Spark's options."""

from tools.spark_options_page import render


def test_the_page_has_the_remedies_for_a_missing_environment() -> None:
    head = " ".join(render().partition("## ")[0].split())
    assert "`[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafkaesque`" in head
    for remedy in ("kafkaesque.spark.session.session", "register(spark)", "PYSPARK_PYTHON"):
        assert remedy in head
