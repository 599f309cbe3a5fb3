"""Why transactional requests are refused."""

from kafkaesque.errors import BrokerError


class TransactionError(BrokerError):
    """A request that a transaction refuses."""


class InvalidTransactionalId(TransactionError):
    """The transactional id is invalid for a producer."""


class UnknownTransactionalId(TransactionError):
    """No producer has this transactional id, or none has used it for long."""


class InvalidTransactionState(TransactionError):
    """The transaction is in a state that does not allow this."""


class InvalidProducerMapping(TransactionError):
    """The transactional id belongs to another producer id."""


class InvalidTransactionTimeout(TransactionError):
    """The transaction's timeout is out of bounds."""


class ConcurrentTransactions(TransactionError):
    """The previous transaction has not ended everywhere yet: retry soon."""


class ProducerFenced(TransactionError):
    """A newer producer has taken this transactional id, or its transaction was aborted for it."""


class CoordinatorFenced(TransactionError):
    """A newer coordinator has already written to this partition."""


class TransactionUnverified(TransactionError):
    """The partition is not part of the producer's transaction; it can only be aborted."""


class TooManyTransactions(TransactionError):
    """A limit on transactions or their partitions is reached."""


class ProducerIdNeeded(TransactionError):
    """The transactional id needs a new producer id, which must be fetched first."""


class FencedDriver(TransactionError):
    """A newer driver has taken over the query's sink."""


class OutdatedBatch(TransactionError):
    """A later batch of the sink is already decided."""
