"""What is refused in Kafka's protocol, in addition to malformed frames."""

from kafkaesque.errors import WireError


class UnencodableMessage(WireError):
    """A message holds a value that its target version cannot carry."""


class UnsupportedVersion(WireError):
    """A message version outside the supported range."""

    def __init__(self, name: str, version: int, first: int, last: int) -> None:
        super().__init__(f"{name} version {version} is not served, only {first} to {last}")
        self.version = version
        self.first = first
        self.last = last


class ApiNotServed(WireError):
    """The other side does not serve this API."""
