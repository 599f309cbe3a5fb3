"""The life cycle of transactions under one transactional id: from one value to the next.

    Empty ── first partition ──> Ongoing ── end ──> PrepareCommit ── all know ──> CompleteCommit
                                   │ │ └── end, timeout, new producer ───> PrepareAbort ──> …
                                   │ └── prepare ──> Prepared ── end, or days later ──> Prepare…
    CompleteCommit, CompleteAbort ─┘ ── a producer comes, with a higher epoch ──> Empty

Once Prepare… is committed the outcome is final, whatever happens to the coordinator. Each function
takes the current value and returns the new one, the same object if there is nothing to write, or
raises what Kafka answers in that state: clients steer by these errors.

With transactions v2 (KIP-890) every end bumps the epoch, so each (producer id, epoch) has at most
one transaction, and late requests of one never reach the next. A coordinator that aborts on its own
always bumps the epoch.
"""

from typing import NoReturn

from msgspec.structs import replace

from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    End,
    Init,
    Prepare,
    Producer,
    Verify,
)
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    InvalidProducerMapping,
    InvalidTransactionState,
    ProducerFenced,
    ProducerIdNeeded,
    TooManyTransactions,
)
from kafkaesque.machines.transactions.transaction_records import (
    ENDING,
    NO_EPOCH,
    NO_PRODUCER,
    NO_TIME,
    OPEN,
    Place,
    State,
    Transaction,
)

OWNER_CHARS_MAX = 200
"""Limit of an owner's name: it is for users, and is in every record of a transaction."""


def goes_on_as(known: Transaction) -> Producer:
    """Return the producer's identity after the end of its transaction."""
    if known.next_id != NO_PRODUCER:
        return Producer(known.next_id, 0)
    return Producer(known.producer_id, known.epoch)


def init(known: Transaction | None, command: Init, now_ms: int) -> Transaction:
    """Register a producer under the id; one that is in the way is fenced and aborted first.

    In that case the value returned is being aborted, and the producer must retry afterwards.
    """
    if known is None:
        return Transaction(
            state=State.EMPTY,
            producer_id=_fresh(command.fresh_id),
            epoch=0,
            timeout_ms=command.timeout_ms,
            changed_ms=now_ms,
        )
    expected = command.expected
    if expected is not None and not _may_go_on(known, expected):
        raise ProducerFenced("a newer producer has taken this transactional id")
    if known.state in ENDING:
        _still_ending()
    if known.state in OPEN:
        return _kept(known, now_ms) if command.keeps_prepared else fenced(known, now_ms)
    if expected is not None and _is_last(known, expected):
        return known  # the answer was lost
    came = replace(
        known,
        state=State.EMPTY,
        timeout_ms=command.timeout_ms,
        began_ms=NO_TIME,
        changed_ms=now_ms,
        last_epoch=NO_EPOCH if expected is None else known.epoch,
    )
    if not known.is_exhausted:
        return replace(came, epoch=known.epoch + 1)
    fresh_id = _fresh(command.fresh_id)
    return replace(came, producer_id=fresh_id, epoch=0, previous_id=known.producer_id)


def add(known: Transaction | None, command: Add, now_ms: int, places_max: int) -> Transaction:
    """Add partitions to the transaction; the first starts it."""
    known = _of(known, command.producer)
    if known.state in ENDING:
        _still_ending()
    if known.state is State.PREPARED:
        raise InvalidTransactionState("the transaction is prepared: it can only be ended")
    is_begun = known.state is State.ONGOING
    before = known.places if is_begun else ()
    places = tuple(dict.fromkeys((*before, *command.places)))
    if len(places) > places_max:
        raise TooManyTransactions(f"a transaction may have at most {places_max} partitions")
    if is_begun and len(places) == len(before):
        return known
    return replace(
        known,
        state=State.ONGOING,
        began_ms=known.began_ms if is_begun else now_ms,
        changed_ms=now_ms,
        number=known.number if is_begun else known.number + 1,
        places=places,
        owner="",
        begun_epoch=NO_EPOCH,
    )


def missing(known: Transaction | None, command: Verify) -> frozenset[Place]:
    """Return which partitions the producer may not write to in its transaction."""
    known = _of(known, command.producer)
    if known.state in ENDING:
        _still_ending()
    allowed = known.places if known.state is State.ONGOING else ()
    return frozenset(command.places).difference(allowed)


def end(known: Transaction | None, command: End, now_ms: int) -> Transaction:
    """Decide how the transaction ends; repeating the same request changes nothing."""
    if command.bumps_epoch and known is not None and _is_last(known, command.producer):
        return _ended_before(known, is_commit=command.is_commit)
    known = _of(known, command.producer)
    if known.state in OPEN:
        ending = State.PREPARE_COMMIT if command.is_commit else State.PREPARE_ABORT
        decided = replace(known, state=ending, changed_ms=now_ms)
        return _raised(decided, command.fresh_id) if command.bumps_epoch else decided
    if command.bumps_epoch and known.state in ENDING:
        _still_ending()  # the epoch belongs to the next transaction
    if command.bumps_epoch and not command.is_commit:
        # The producer cannot know whether any request has arrived: none has, so there is no marker.
        ended = replace(known, state=State.COMPLETE_ABORT, changed_ms=now_ms, places=())
        return _completed_id(_raised(ended, command.fresh_id))
    return _ended_so(known, is_commit=command.is_commit)


def prepare(known: Transaction | None, command: Prepare, now_ms: int) -> Transaction:
    """Prepare the transaction: any client that knows its id may end it."""
    known = _of(known, command.producer)
    if known.state is State.PREPARED:
        return known
    if known.state is not State.ONGOING:
        raise InvalidTransactionState("only an open transaction can be prepared")
    owner = command.owner[:OWNER_CHARS_MAX]
    return replace(known, state=State.PREPARED, changed_ms=now_ms, owner=owner)


def decided(known: Transaction, now_ms: int) -> Transaction:
    """Commit a prepared transaction as part of a batch; this fences its producer."""
    assert known.state is State.PREPARED
    return replace(
        known,
        state=State.PREPARE_COMMIT,
        epoch=known.epoch + 1,
        last_epoch=NO_EPOCH,
        changed_ms=now_ms,
    )


def written_by(known: Transaction) -> Producer:
    """Return the writer of the open transaction: later producers may have kept it."""
    epoch = known.epoch if known.begun_epoch == NO_EPOCH else known.begun_epoch
    return Producer(known.producer_id, epoch)


def _kept(known: Transaction, now_ms: int) -> Transaction:
    """Register a producer that will end the open transaction; its writer is fenced."""
    if known.is_exhausted:
        raise InvalidTransactionState("the epochs are used up: end the open transaction first")
    is_prepared = known.state is State.PREPARED
    return replace(
        known,
        state=State.PREPARED,
        epoch=known.epoch + 1,
        last_epoch=NO_EPOCH,
        begun_epoch=written_by(known).epoch,
        changed_ms=known.changed_ms if is_prepared else now_ms,  # the time limit is not extended
    )


def fenced(known: Transaction, now_ms: int, *, last_epoch: int = NO_EPOCH) -> Transaction:
    """Abort an open transaction without its producer, which is fenced by the epoch bump."""
    assert known.state in OPEN
    return replace(
        known,
        state=State.PREPARE_ABORT,
        epoch=known.epoch + 1,
        last_epoch=last_epoch,
        changed_ms=now_ms,
    )


def completed(known: Transaction, now_ms: int) -> Transaction:
    """Record that all partitions have the marker."""
    assert known.state in ENDING
    is_commit = known.state is State.PREPARE_COMMIT
    done = replace(
        known,
        state=State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT,
        began_ms=NO_TIME,
        changed_ms=now_ms,
        places=(),
        owner="",
        begun_epoch=NO_EPOCH,
    )
    return _completed_id(done)


def _completed_id(done: Transaction) -> Transaction:
    if done.next_id == NO_PRODUCER:
        return done
    return replace(
        done, producer_id=done.next_id, epoch=0, previous_id=done.producer_id, next_id=NO_PRODUCER
    )


def _raised(decided: Transaction, fresh_id: int) -> Transaction:
    next_id = _fresh(fresh_id) if decided.is_exhausted else NO_PRODUCER
    return replace(decided, epoch=decided.epoch + 1, last_epoch=decided.epoch, next_id=next_id)


def _ended_so(known: Transaction, *, is_commit: bool) -> Transaction:
    """Return the value if the transaction has already ended this way."""
    prepared, complete = (
        (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)
        if is_commit
        else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
    )
    if known.state is prepared:
        _still_ending()
    if known.state is complete:
        return known
    wanted = "committed" if is_commit else "aborted"
    raise InvalidTransactionState(f"{known.state.value}: it cannot be {wanted}")


def _ended_before(known: Transaction, *, is_commit: bool) -> Transaction:
    """Return the value if an equal request, whose answer was lost, already ended it."""
    commits = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)
    aborts = (State.PREPARE_ABORT, State.COMPLETE_ABORT)
    if known.state in (commits if is_commit else aborts):
        return known
    raise ProducerFenced("the transaction has already ended the other way")


def _of(known: Transaction | None, producer: Producer) -> Transaction:
    """Return the value if it belongs to this producer."""
    if known is None:
        raise InvalidProducerMapping("unknown transactional id")
    if known.next_id != NO_PRODUCER and producer == goes_on_as(known):
        _still_ending()
    if producer.producer_id != known.producer_id:
        raise InvalidProducerMapping("the transactional id has another producer id")
    if producer.epoch != known.epoch:
        raise ProducerFenced(f"the producer is at epoch {known.epoch}, not {producer.epoch}")
    return known


def _may_go_on(known: Transaction, expected: Producer) -> bool:
    if expected == Producer(known.producer_id, known.epoch):
        return True
    # The last epoch may retry, or we aborted its transaction; but not during an open transaction.
    return known.state not in OPEN and _is_last(known, expected)


def _is_last(known: Transaction, producer: Producer) -> bool:
    """Return whether this is the producer as it was before the last epoch bump."""
    last_id = known.previous_id if known.epoch == 0 else known.producer_id
    return known.last_epoch != NO_EPOCH and producer == Producer(last_id, known.last_epoch)


def _fresh(fresh_id: int) -> int:
    if fresh_id == NO_PRODUCER:
        raise ProducerIdNeeded("a producer id is needed")
    return fresh_id


def _still_ending() -> NoReturn:
    raise ConcurrentTransactions("the previous transaction has not yet ended everywhere")
