"""Every error that a handler can meet has a code of its own choice."""

from kafkaesque import errors
from kafkaesque.server.errors import CODES, code_of
from kafkaesque.wire.error_codes import ErrorCode


def leaves(cls: type[errors.KafkaesqueError]) -> set[type[errors.KafkaesqueError]]:
    below = cls.__subclasses__()
    return {cls} if not below else set().union(*(leaves(each) for each in below))


def test_every_error_of_broker_log_and_batches_has_a_code() -> None:
    for root in (errors.BrokerError, errors.LogError, errors.RaftError, errors.BatchError):
        for leaf in leaves(root):
            assert any(cls in CODES for cls in leaf.__mro__), leaf


def test_the_nearest_class_decides() -> None:
    assert code_of(errors.OffsetOutOfRange(5, 0, 3)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert code_of(errors.DiskFull("full")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(errors.NotLeader(None)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_is_not_in_the_table_is_not_blamed_on_the_client() -> None:
    assert code_of(errors.MalformedFrame("x")) is ErrorCode.UNKNOWN_SERVER_ERROR
