"""AlterUserScramCredentials: changes passwords."""

from kafkaesque.wire.kinds import Int8, Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=51, name="AlterUserScramCredentials", first=0, last=0, flexible_since=0)


@struct
class ScramCredentialDeletion:
    """One of `deletions` of AlterUserScramCredentialsRequest."""

    name: str
    mechanism: Int8


@struct
class ScramCredentialUpsertion:
    """One of `upsertions` of AlterUserScramCredentialsRequest."""

    name: str
    mechanism: Int8
    iterations: Int32
    salt: bytes
    salted_password: bytes


@message(API)
class AlterUserScramCredentialsRequest:
    """A client sets and deletes SCRAM credentials."""

    deletions: tuple[ScramCredentialDeletion, ...]
    upsertions: tuple[ScramCredentialUpsertion, ...]


@struct
class AlterUserScramCredentialsResult:
    """One of `results` of AlterUserScramCredentialsResponse."""

    user: str
    error_code: Int16
    error_message: str | None


@message(API)
class AlterUserScramCredentialsResponse:
    """The broker says which users were changed."""

    throttle_time_ms: Int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...]
