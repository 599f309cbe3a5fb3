"""Questions between brokers about the state of share groups, and their answers: plain values.

They travel as msgpack arrays whose first element is their tag. All may be repeated when no answer
came: adopting twice with one serial, or writing the same records twice, changes nothing.
"""

from typing import TypeAlias

import msgspec

from kafkaesque.errors import GroupError, KafkaesqueError, NotCoordinator
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.machines.queues import queue_errors as errors
from kafkaesque.machines.queues.share_commands import (
    Adopted,
    AdoptedBefore,
    ShareCommand,
    ShareGroupDeleted,
    ShareStarts,
    StartSet,
    Written,
)


class ShareAsked(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A command for the coordinator on one partition of the topic of share state."""

    partition: int
    command: ShareCommand


ShareAnswer: TypeAlias = (
    Adopted
    | AdoptedBefore
    | Written
    | StartSet
    | ShareGroupDeleted
    | ShareStarts
    | Refused
    | Unknown
)


def to_error(refusal: Refused) -> KafkaesqueError:
    """Return why a coordinator refused; an unknown reason is transient."""
    return _ERRORS.get(refusal.error, NotCoordinator)(refusal.text)


_ERRORS: dict[str, type[GroupError]] = {
    kind.__name__: kind
    for kind in (
        errors.FencedGeneration,
        errors.FencedTerm,
        errors.InvalidShareState,
        errors.ShareStateFull,
    )
}
