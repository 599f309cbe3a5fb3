"""Error codes against kio's list."""

from kio.schema.errors import ErrorCode as KioErrorCode

from kafkaesque.wire.error_codes import ErrorCode


def test_every_error_code_of_kafka_exists_under_its_name() -> None:
    ours = {code.name.lower(): int(code) for code in ErrorCode}
    assert ours == {code.name: int(code) for code in KioErrorCode}
