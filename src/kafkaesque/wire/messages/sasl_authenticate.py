"""SaslAuthenticate: authenticates a connection."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int64, Since
from kafkaesque.wire.message import Api, message

API = Api(key=36, name="SaslAuthenticate", first=0, last=2, flexible_since=2)


@message(API)
class SaslAuthenticateRequest:
    """A client sends a step of the SASL exchange."""

    auth_bytes: bytes


@message(API)
class SaslAuthenticateResponse:
    """The broker sends its step of the SASL exchange."""

    error_code: Int16
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: Annotated[Int64, Since(1)] = 0
