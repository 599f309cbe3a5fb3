"""What transactions refuse, and why."""

from kafkaesque.errors import TransactionError


class InvalidTransactionalId(TransactionError):
    """The transactional id is not one that a producer may have."""


class UnknownTransactionalId(TransactionError):
    """No producer has this transactional id, or none has used it for long."""


class InvalidTransactionState(TransactionError):
    """The transaction is not in a state in which this can be done."""


class InvalidProducerMapping(TransactionError):
    """The transactional id belongs to another producer id than the one given."""


class InvalidTransactionTimeout(TransactionError):
    """The time-out of the transaction is shorter or longer than allowed."""


class ConcurrentTransactions(TransactionError):
    """The transaction before this one is not yet ended everywhere: ask again soon."""


class ProducerFenced(TransactionError):
    """A newer producer has taken this transactional id, or its transaction was aborted for it."""


class CoordinatorFenced(TransactionError):
    """A newer coordinator has already spoken to this partition."""


class TransactionUnverified(TransactionError):
    """The partition does not belong to the producer's transaction; it can only be aborted."""


class TooManyTransactions(TransactionError):
    """A limit on transactions or on their partitions is reached."""


class ProducerIdNeeded(TransactionError):
    """The transactional id can only go on under a new producer id, which must be fetched first."""


class FencedDriver(TransactionError):
    """A newer driver has taken over the query's sink."""


class OutdatedBatch(TransactionError):
    """A later batch of the sink is decided already."""
