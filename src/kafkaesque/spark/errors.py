"""Why queries and pipelines fail."""

from kafkaesque.client.errors import ClientError
from kafkaesque.errors import KafkaesqueError


class BadOption(ClientError):
    """A Spark query option that is unknown, contradictory or cannot be honored."""


class DataLost(ClientError):
    """Records that a query had not read yet are gone from the topic."""


class SparkMissing(KafkaesqueError):
    """Spark, or a Java for it, is needed but not installed."""


class QueryFailed(KafkaesqueError):
    """A query of a pipeline ended with an error."""
