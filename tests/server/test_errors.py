"""Every error that can reach a client has an error code, or inherits one on purpose."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

import pytest

import kafkaesque
from kafkaesque import errors
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.machines.queues import queue_errors
from kafkaesque.server.requests.errors import CODES, code_of
from kafkaesque.wire.error_codes import ErrorCode

OF_OTHER_ENVIRONMENTS = ("kafkaesque.__main__", "kafkaesque.spark")
"""Modules that run a program, or need packages that are not installed where brokers run."""

INHERITED: Mapping[str, tuple[ErrorCode, frozenset[str]]] = {
    "errors of the disk or its files: clients can only retry, the broker's log has the details": (
        ErrorCode.KAFKA_STORAGE_ERROR,
        frozenset({"CorruptLog", "DiskFailed", "DiskFull", "PartitionOffline", "StateLost"}),
    ),
    "files that keep a broker from starting, or a program from reading them: not sent to clients": (
        ErrorCode.KAFKA_STORAGE_ERROR,
        frozenset({"FolderInUse", "ForeignFile", "JournalLost", "NewerFormat", "OldCopy"}),
    ),
    "errors between brokers that repair their logs: they reach no client": (
        ErrorCode.KAFKA_STORAGE_ERROR,
        frozenset({"NotYet", "RepairFailed", "_Refusal"}),
    ),
    "another replica leads, or this one does soon: clients look for the leader and try again": (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        frozenset(
            {
                "BehindRefused",
                "FirstBatchMissing",
                "LeaderNotReady",
                "NotFilled",
                "NotHere",
                "NotLeader",
            }
        ),
    ),
    "errors during moves of replicas: they are retried, and reach no client": (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        frozenset({"ChangeInProgress", "InvalidChange"}),
    ),
    "damage in transit, which has the same code for all batches": (
        ErrorCode.CORRUPT_MESSAGE,
        frozenset({"CorruptBatch"}),
    ),
    "a broker number that is never reused is an invalid assignment like others": (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        frozenset({"BrokerRemoved"}),
    ),
    "a change of settings is retried until its timeout; Kafka has no code for a race": (
        ErrorCode.INVALID_CONFIG,
        frozenset({"SettingsChanged"}),
    ),
}
"""Errors that inherit the code of the class above, by the reason for it."""

GROUPS = frozenset({"BrokerError", "FetchSessionError", "GroupError", "TransactionError"})
"""Base classes only; the classes below must not fall through to a common code."""

TOLD = frozenset({"BatchError", "BrokerError", "LogError", "RaftError"})
"""Direct subclasses of the root that can reach a client."""

NOT_TOLD: Mapping[str, frozenset[str]] = {
    "the connection ends instead, or the answer has a code of its own": frozenset({"WireError"}),
    "between brokers: who asks a peer for a client tells it by one of the classes above": frozenset(
        {"LinkError"}
    ),
    "the text protocol has words of its own": frozenset({"BadCommand"}),
    "at the start of a broker": frozenset({"BadConfiguration", "CannotListen"}),
    "in programs, which are clients themselves": frozenset(
        {
            "BackupError",
            "ClientError",
            "DemoFailed",
            "PatternError",
            "QueryFailed",
            "SparkMissing",
        }
    ),
}
"""Direct subclasses of the root that never reach a Kafka client, by the reason."""


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported() -> None:
    """Import all modules: classes are known once their modules are imported."""
    for module in pkgutil.walk_packages(kafkaesque.__path__, "kafkaesque."):
        if not module.name.startswith(OF_OTHER_ENVIRONMENTS):
            importlib.import_module(module.name)


def below(cls: type[errors.KafkaesqueError]) -> Iterator[type[errors.KafkaesqueError]]:
    """Yield all of our subclasses of a class."""
    for each in cls.__subclasses__():
        if each.__module__.startswith("kafkaesque."):
            yield each
            yield from below(each)


def told() -> list[type[errors.KafkaesqueError]]:
    """Return all classes that can reach a client."""
    roots = [cls for cls in errors.KafkaesqueError.__subclasses__() if cls.__name__ in TOLD]
    return [*roots, *(cls for root in roots for cls in below(root))]


def inherited() -> dict[str, ErrorCode]:
    """Return which code is inherited on purpose, by the name of the error."""
    return {name: code for code, names in INHERITED.values() for name in names}


def test_every_error_has_its_own_code_or_inherits_one_on_purpose() -> None:
    decided = GROUPS | inherited().keys()
    undecided = {cls.__name__ for cls in told() if cls not in CODES} - decided
    assert not undecided, "give them a row in CODES, or list them in INHERITED with a reason"


def test_an_inherited_code_is_the_one_that_was_decided_on() -> None:
    classes = {cls.__name__: cls for cls in told() if cls not in CODES}
    assert inherited().keys() <= classes.keys(), "these have rows of their own, or are gone"
    for name, code in inherited().items():
        assert code_of(classes[name].__new__(classes[name])) is code, name


def test_an_error_is_listed_under_only_one_reason() -> None:
    assert len(inherited()) == sum(len(names) for _, names in INHERITED.values())
    assert not inherited().keys() & GROUPS


def test_no_two_errors_have_the_same_name() -> None:
    names = [cls.__name__ for cls in told()]
    assert len(names) == len(set(names))


def test_every_class_below_the_root_reaches_clients_or_not_on_purpose() -> None:
    found = {
        cls.__name__
        for cls in errors.KafkaesqueError.__subclasses__()
        if cls.__module__.startswith("kafkaesque.")
    }
    assert found == TOLD | frozenset().union(*NOT_TOLD.values())


def test_a_new_error_does_not_inherit_a_code_unnoticed() -> None:
    class Unheard(errors.LogError):
        pass

    Unheard.__module__ = "kafkaesque.errors"
    try:
        with pytest.raises(AssertionError, match="row in CODES"):
            test_every_error_has_its_own_code_or_inherits_one_on_purpose()
    finally:
        Unheard.__module__ = __name__  # the class may live as long as the process


def test_the_nearest_class_decides() -> None:
    assert code_of(OffsetOutOfRange(5, 0, 3)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert code_of(errors.DiskFull("full")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(errors.NotLeader(None)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_share_groups_answer_with_the_codes_that_their_clients_know() -> None:
    assert code_of(queue_errors.InvalidRecordState("x")) is ErrorCode.INVALID_RECORD_STATE
    assert code_of(queue_errors.InvalidAcknowledgement("x")) is ErrorCode.INVALID_REQUEST
    assert code_of(queue_errors.FencedTerm("x")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(queue_errors.FencedGeneration("x")) is ErrorCode.FENCED_STATE_EPOCH


def test_an_unlisted_error_is_not_blamed_on_the_client() -> None:
    assert code_of(errors.MalformedFrame("x")) is ErrorCode.UNKNOWN_SERVER_ERROR
