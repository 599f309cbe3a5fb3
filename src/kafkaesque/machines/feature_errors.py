"""What is refused because of the levels of features."""

from kafkaesque.errors import BrokerError, LogError


class InvalidLevel(BrokerError):
    """A feature cannot be finalised at this level."""


class UnsupportedLevel(LogError):
    """A broker does not support the levels that its cluster has finalised."""
