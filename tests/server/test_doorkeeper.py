"""Which connections are admitted: by number, by address and by rate."""

import logging
from typing import Any

import pytest

from kafkaesque.server.edge.counters import Counters, Refusal
from kafkaesque.server.edge.doorkeeper import Doorkeeper
from kafkaesque.server.requests.addresses import is_loopback
from kafkaesque.server_config import LimitsConfig
from tests.heard import Heard
from tests.server.running import ManualClock


class AGuest:
    """A connection that is never overdue."""

    def overdue(self, now_ms: int) -> Refusal | None:
        return None

    def abort(self) -> None: ...

    def finish(self) -> None: ...


def a_doorkeeper(clock: ManualClock, **limits: Any) -> tuple[Doorkeeper, Counters]:
    counters = Counters()
    return Doorkeeper(LimitsConfig(**limits), clock, counters, Heard(clock)), counters


@pytest.mark.complains(
    "connection_closed reason=connections_per_address peer=192.0.2.1: too many",
)
def test_one_address_cannot_use_up_all_connections() -> None:
    keeper, counters = a_doorkeeper(ManualClock(), connections_per_address_max=2)
    guests = [AGuest() for _ in range(3)]
    assert [keeper.enter(guest, "192.0.2.1") for guest in guests] == [True, True, False]
    assert keeper.enter(AGuest(), "192.0.2.2")
    assert counters.refused == {Refusal.CONNECTIONS_PER_ADDRESS: 1}
    keeper.leave(guests[0])
    assert keeper.enter(AGuest(), "192.0.2.1")


@pytest.mark.complains(
    "connection_closed reason=rate peer=192.0.2.3: too many",
    "connection_closed reason=rate_per_address peer=192.0.2.1: too many",
)
def test_rates_are_limited_for_each_address_and_for_all_together() -> None:
    clock = ManualClock()
    keeper, counters = a_doorkeeper(clock, connection_rate_per_address_max=2, connection_rate_max=3)
    entered = [keeper.enter(AGuest(), f"192.0.2.{last}") for last in (1, 1, 1, 2, 3)]
    assert entered == [True, True, False, True, False]
    assert counters.refused == {Refusal.RATE_PER_ADDRESS: 1, Refusal.RATE: 1}
    clock.ms += 1_000
    assert keeper.enter(AGuest(), "192.0.2.1")


@pytest.mark.complains(
    "connection_closed reason=connections peer=::1: too many",
)
def test_this_machines_own_programs_count_only_towards_the_total() -> None:
    keeper, _ = a_doorkeeper(
        ManualClock(),
        connections_max=4,
        connections_per_address_max=1,
        connection_rate_per_address_max=1,
        connection_rate_max=1,
    )
    entered = [keeper.enter(AGuest(), "127.0.0.1") for _ in range(3)]
    assert entered == [True, True, True]
    assert keeper.enter(AGuest(), "192.0.2.1")
    assert not keeper.enter(AGuest(), "::1")


@pytest.mark.complains(
    "connection_closed reason=request peer=192.0.2.1: x??connection_closed ?[31m",
)
def test_client_text_cannot_pass_for_a_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keeper, _ = a_doorkeeper(ManualClock())
    with caplog.at_level(logging.WARNING):
        keeper.complain(Refusal.REQUEST, "192.0.2.1", "x\r\nconnection_closed \x1b[31m")
    assert caplog.records[0].getMessage().endswith(": x??connection_closed ?[31m")


@pytest.mark.parametrize(
    ("address", "is_own"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("192.0.2.1", False), ("", True)],
)
def test_loopback_addresses_are_recognized(address: str, is_own: bool) -> None:
    assert is_loopback(address) is is_own


def test_a_client_without_a_controller_disconnects_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Waiting(AGuest):
        is_finished = False

        def overdue(self, now_ms: int) -> Refusal | None:
            return Refusal.CONTROLLER_LOST

        def abort(self) -> None:
            raise AssertionError("it is not hung up on")

        def finish(self) -> None:
            self.is_finished = True

    keeper, counters = a_doorkeeper(ManualClock())
    guest = Waiting()
    assert keeper.enter(guest, "192.0.2.1")
    keeper.sweep()
    assert guest.is_finished
    assert counters.refused == {Refusal.CONTROLLER_LOST: 1}
    assert not caplog.records
