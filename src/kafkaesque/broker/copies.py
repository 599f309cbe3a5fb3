"""What brokers ask each other before one of them empties its copy of a log: how is yours?

They travel between brokers as the data of a call (`docs/reference/format-link.md`). A broker of a
version that does not know the call refuses it, which counts as a copy that is not whole.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from kafkaesque.broker.replica import Replica
from kafkaesque.machines.catalog_commands import Refused, Unknown
from kafkaesque.raft.quorum import is_majority
from kafkaesque.types import GroupId, Index, NodeId, Term


class Condition(StrEnum):
    """How one copy of a log is."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    """Some of it cannot be read; it is mended from others, and keeps its vote meanwhile."""
    FILLING = "filling"
    """It was emptied, and does not vote before it holds what is committed."""
    WAITING = "waiting"
    """It cannot be opened, and waits to be emptied."""
    ABSENT = "absent"
    """It is not open: it is not here, or its disk failed."""


class CopyAsked(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """How is your copy of this group's log?"""

    source: NodeId
    """Who asks."""

    group: GroupId


class CopyTold(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """How a copy is, and who votes as far as it knows; later versions may add fields."""

    condition: Condition
    term: Term = 0
    commit: Index = 0
    voters: tuple[NodeId, ...] = ()


CopyWord: TypeAlias = CopyTold | Refused | Unknown
"""What comes back of the question: an answer, or that there is none."""


def tell_copy(replica: Replica | None) -> CopyTold:
    """Answer for the copy that is here, if one is open."""
    if replica is None or replica.error is not None or replica.log.is_closed:
        return CopyTold(condition=Condition.ABSENT)
    condition = Condition.WHOLE
    if replica.raft.is_recovering:
        condition = Condition.FILLING
    elif replica.damage.found:
        condition = Condition.DAMAGED
    return CopyTold(
        condition=condition,
        term=replica.raft.term,
        commit=replica.raft.commit,
        voters=replica.raft.voters.voters,
    )


def obstacle(
    node: NodeId, known: Collection[NodeId], told: Mapping[NodeId, CopyWord]
) -> str | None:
    """Say why a node must not empty its copy of a log yet; None if nothing speaks against it.

    A copy that is emptied has no vote until it is filled. So the others must be able to elect a
    leader that has all that was ever committed, which takes a majority of the voters; and what two
    emptied copies alone have acknowledged would be in neither. `known` are the voters that this
    copy remembers. Those who have come further know better.
    """
    answers = {peer: word for peer, word in told.items() if isinstance(word, CopyTold)}
    newest = max(answers.values(), key=lambda word: (word.term, word.commit), default=None)
    voters = newest.voters if newest is not None and newest.voters else tuple(known)
    conditions = {peer: word.condition for peer, word in answers.items() if peer in voters}
    whole = [peer for peer, one in conditions.items() if one is Condition.WHOLE]
    if not is_majority(whole, voters):
        others = [peer for peer in sorted(voters) if peer not in (node, *whole)]
        states = ", ".join(_state_of(peer, told.get(peer)) for peer in others)
        return f"{len(whole)} of {len(voters)} voters are whole, which is no majority ({states})"
    for peer, condition in sorted(conditions.items()):
        if condition is Condition.FILLING:
            return f"the copy of broker {peer} is being filled: one at a time"
        if condition is Condition.WAITING and peer < node:
            return f"the copy of broker {peer} comes first: one at a time"
    return None


def _state_of(peer: NodeId, word: CopyWord | None) -> str:
    match word:
        case CopyTold(condition=condition):
            return f"that of broker {peer} is {condition.value}"
        case Refused(text=text):
            return f"broker {peer} does not say: {text}"
        case _:
            return f"broker {peer} does not answer"
