"""What the page of Spark's options says besides the options."""

from tools.spark_options_page import render


def test_whoever_does_not_get_as_far_as_an_option_finds_the_remedy_here() -> None:
    head = " ".join(render().partition("## ")[0].split())
    assert "`[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafkaesque`" in head
    for remedy in ("kafkaesque.spark.session.session", "register(spark)", "PYSPARK_PYTHON"):
        assert remedy in head
