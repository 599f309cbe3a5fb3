"""Why changes of the catalog are refused."""

from kafkaesque.errors import BrokerError, InvalidSetting, InvalidTopic, LogError, UnknownTopic


class UnknownTopicId(UnknownTopic):
    """No topic has this id, or no longer does."""


class InvalidPartitions(InvalidTopic):
    """The partition count is invalid for this topic."""


class InvalidReplicas(BrokerError):
    """There are fewer brokers than requested replicas."""


class InvalidAssignment(BrokerError):
    """The replicas cannot be placed on the given brokers."""


class BrokerRemoved(InvalidAssignment):
    """The broker was removed from the cluster for good: its number is never reused."""


class NoMove(BrokerError):
    """The partition is not being moved, or not by the given move."""


class UnknownBroker(BrokerError):
    """There is no broker with this number."""


class BrokerInUse(BrokerError):
    """The broker still holds something, so it cannot be removed."""


class SettingsChanged(InvalidSetting):
    """Another client changed the settings meanwhile: nothing was done."""


class InvalidLevel(BrokerError):
    """The feature cannot be finalised at this level."""


class UnsupportedLevel(LogError):
    """A broker does not support the levels that its cluster has finalised."""
