"""What brokers refuse to the driver of a query, and why."""

from kafkaesque.errors import Refused


class DriverFenced(Refused):
    """A newer driver has taken over the query's sink; this one must write no more."""


class OlderBatch(Refused):
    """A later batch of the sink is decided already: the query's checkpoint is an older one."""
