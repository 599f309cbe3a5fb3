"""Why a partition refuses requests."""

from collections.abc import Sequence

from kafkaesque.errors import BrokerError, RaftError


class NotHere(RaftError):
    """This broker holds no replica of the partition; other brokers do."""


class NotFilled(NotHere):
    """The local copy is damaged and waits to be emptied and refilled by other brokers."""


class BatchTooLarge(BrokerError):
    """The batch exceeds the topic's size limit."""


class RecordsRefused(BrokerError):
    """The topic rejects some records of a batch; nothing of the batch was appended."""

    def __init__(self, reason: str, places: Sequence[int]) -> None:
        super().__init__(f"{len(places)} of the batch's records are refused: {reason}")
        self.reason = reason
        self.places = places  # positions in the batch, from 0


class TimeRefused(BrokerError):
    """A batch has a timestamp that the topic rejects."""


class NotEnoughReplicas(BrokerError):
    """Fewer replicas are in sync than the topic requires, or no majority can be reached."""


class OffsetNotAvailable(BrokerError):
    """This follower does not yet know that the offset is committed; it will soon."""


class StaleProducerEpoch(BrokerError):
    """The producer was replaced by a newer one with the same id."""

    def __init__(self, producer_id: int, epoch: int, current: int) -> None:
        super().__init__(f"producer {producer_id} is at epoch {current}, this batch is of {epoch}")


class OutOfOrderSequence(BrokerError):
    """A producer's batch does not follow its last one: a batch in between must have been lost."""

    def __init__(self, producer_id: int, found: int, expected: int) -> None:
        super().__init__(f"producer {producer_id} sent sequence {found}, {expected} comes next")
        self.expected = expected


class SequenceReused(BrokerError):
    """A transaction's batch reuses older sequences but repeats no batch of this transaction."""

    def __init__(self, producer_id: int, found: int, expected: int) -> None:
        super().__init__(
            f"producer {producer_id} used sequence {found} before, {expected} comes next:"
            " abort, and continue with a higher epoch"
        )


class StaleTerm(BrokerError):
    """The client's leader epoch is over; it must find the current leader."""


class FutureTerm(BrokerError):
    """The client knows a later term than this replica: the replica lags."""


class FetchSessionError(BrokerError):
    """A fetch session that cannot continue; the client starts over with a full request."""


class FetchSessionUnknown(FetchSessionError):
    """No session has this id, or it has ended."""


class FetchEpochWrong(FetchSessionError):
    """The request's epoch is not the next one of its session."""


class FetchTopicsMixed(FetchSessionError):
    """A session that started with topic names continues with ids, or the reverse."""
