"""The query between brokers before one empties its copy of a log: what state is yours in?

It travels as the data of a call (`docs/reference/format-link.md`). A broker whose version does not
know the call refuses it, which counts as a copy that is not whole.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.raft.quorum import is_majority
from kafkaesque.types import GroupId, Index, NodeId, Term


class Condition(StrEnum):
    """The state of one copy of a log."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    """Part of it cannot be read; it is mended from others, and keeps its vote meanwhile."""
    FILLING = "filling"
    """It was emptied, and does not vote until it holds what is committed."""
    WAITING = "waiting"
    """It cannot be opened, and waits to be emptied."""
    ABSENT = "absent"
    """It is not open: it is elsewhere, or its disk failed."""


class CopyAsked(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Asks for the state of a copy of this group's log."""

    source: NodeId
    """The asking broker."""

    group: GroupId


class CopyTold(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A copy's state, and the voters as far as it knows; later versions may add fields."""

    condition: Condition
    term: Term = 0
    commit: Index = 0
    voters: tuple[NodeId, ...] = ()


CopyWord: TypeAlias = CopyTold | Refused | Unknown
"""The result of the query: an answer, or that there is none."""


def tell_copy(replica: Replica | None) -> CopyTold:
    """Report the state of the local copy, if one is open."""
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
    """Return why a node must not empty its copy of a log yet; None if it may.

    An emptied copy has no vote until it is filled. So the others must be able to elect a leader
    that has all that was ever committed, which takes a majority of the voters; and anything
    acknowledged by just two emptied copies would be in neither. `known` are the voters that this
    copy remembers; the most advanced answer overrides them.
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
            return f"broker {peer} refuses to answer: {text}"
        case _:
            return f"broker {peer} does not answer"
