"""SaslHandshake: starts the authentication of a connection."""

from kafkaesque.wire.kinds import Int16
from kafkaesque.wire.message import Api, message

API = Api(key=17, name="SaslHandshake", first=0, last=1, flexible_since=2)


@message(API)
class SaslHandshakeRequest:
    """A client names the SASL mechanism that it will use."""

    mechanism: str


@message(API)
class SaslHandshakeResponse:
    """The broker lists the mechanisms that it supports."""

    error_code: Int16
    mechanisms: tuple[str, ...] = ()
