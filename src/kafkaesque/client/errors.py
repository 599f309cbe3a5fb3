"""How requests of our own client fail."""

from kafkaesque.errors import KafkaesqueError


class ClientError(KafkaesqueError):
    """A broker did not do what a client requested, or may not have done it."""


class InvalidAddress(ClientError):
    """An invalid broker address: `host:port` is expected, several separated by commas."""


class Unreachable(ClientError):
    """No connection could be made, so nothing was sent."""


class ConnectionLost(ClientError):
    """The connection closed or went silent before the response came."""


class NotServed(ClientError):
    """The broker does not serve the API, or no version that this client knows."""


class Refused(ClientError):
    """The broker refused the request; `code` is Kafka's name for the reason."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class RefusedForNow(Refused):
    """The broker refused, but it or another broker may accept soon."""


class DriverFenced(Refused):
    """A newer driver has taken over the query's sink; this one must write no more."""


class OlderBatch(Refused):
    """A later batch of the sink is already decided: the query's checkpoint is outdated."""
