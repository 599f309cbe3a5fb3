"""Calls between brokers: every kind has a unique number."""

from kafkaesque.broker.cluster.calls import (
    CALLS,
    COMMAND,
    COPY,
    RANGE,
    SHARE_STATE,
    TRANSACTION,
)
from kafkaesque.server.peers.peering import Ask


def test_no_two_kinds_of_calls_share_a_number() -> None:
    assert [kind.number for kind in (COMMAND, TRANSACTION, RANGE, COPY, SHARE_STATE)] == [
        1,
        6,
        7,
        8,
        10,
    ]
    assert CALLS.keys().isdisjoint(Ask)
