"""DescribeUserScramCredentials: which users have a password."""

from kafkaesque.wire.kinds import Int8, Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=50, name="DescribeUserScramCredentials", first=0, last=0, flexible_since=0)


@struct
class UserName:
    """One of `users` of DescribeUserScramCredentialsRequest."""

    name: str


@message(API)
class DescribeUserScramCredentialsRequest:
    """A client asks which users have SCRAM credentials."""

    users: tuple[UserName, ...] | None


@struct
class CredentialInfo:
    """One of `credential_infos` of DescribeUserScramCredentialsResult."""

    mechanism: Int8
    iterations: Int32


@struct
class DescribeUserScramCredentialsResult:
    """One of `results` of DescribeUserScramCredentialsResponse."""

    user: str
    error_code: Int16
    error_message: str | None
    credential_infos: tuple[CredentialInfo, ...]


@message(API)
class DescribeUserScramCredentialsResponse:
    """The broker lists users and the kinds of their credentials."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
    results: tuple[DescribeUserScramCredentialsResult, ...]
