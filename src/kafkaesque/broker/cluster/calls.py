"""The kinds of calls between brokers: one row each, with its number, question and answers."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from kafkaesque.broker.replication.copy_query import CopyAsked, CopyTold
from kafkaesque.broker.replication.repair_ranges import RangeAnswer, RangeAsked
from kafkaesque.machines.catalog import catalog_commands
from kafkaesque.machines.queues import share_questions
from kafkaesque.machines.transactions import transaction_questions

Q = TypeVar("Q")
A = TypeVar("A")


class CallKind(Generic[Q, A]):
    """One kind of call. `Broker.answer` answers it."""

    def __init__(self, number: int, question: object, answer: object) -> None:
        self.number = number
        """Stands for the kind on a link; never given to another one."""
        self.question: msgspec.msgpack.Decoder[Q] = msgspec.msgpack.Decoder(question)
        self.answer: msgspec.msgpack.Decoder[A] = msgspec.msgpack.Decoder(answer)


COMMAND = CallKind[catalog_commands.CatalogCommand, catalog_commands.Reply](
    1, catalog_commands.CatalogCommand, catalog_commands.Reply
)
"""A command for the leader of the catalog."""

TRANSACTION = CallKind[transaction_questions.Question, transaction_questions.Answer](
    6, transaction_questions.Question, transaction_questions.Answer
)
"""A question about transactions led or coordinated there."""

RANGE = CallKind[RangeAsked, RangeAnswer](7, RangeAsked, RangeAnswer)
"""A request for part of a log, by a broker whose own copy is damaged."""

COPY = CallKind[CopyAsked, CopyTold](8, CopyAsked, CopyTold)
"""A question about the state of a copy, by a broker that wants to empty its own."""

SHARE_STATE = CallKind[share_questions.ShareAsked, share_questions.ShareAnswer](
    10, share_questions.ShareAsked, share_questions.ShareAnswer
)
"""A command for a coordinator of share state."""

CALLS: Mapping[int, CallKind[Any, Any]] = {
    kind.number: kind for kind in (COMMAND, TRANSACTION, RANGE, COPY, SHARE_STATE)
}
"""Every kind, by its number."""
