"""Waits until a new cluster can lose any one of its brokers."""

import time

from kafkaesque.client.admin import Admin
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.voter_choice import VOTERS_MAX

LOOK_EVERY_S = 0.05
SETTLE_SECONDS_MAX = 60.0


def await_voters(bootstrap: str, brokers: int) -> None:
    """Return when the catalog has as many voters as it gets with this many brokers.

    From then on any one of three may be killed. Raises KafkaesqueError when that takes too long.
    """
    wanted = min(VOTERS_MAX, brokers if brokers % 2 else brokers - 1)
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    with Admin(bootstrap) as admin:
        while time.monotonic() < deadline:
            quorum = admin.brokers.quorum()
            if quorum is not None and len(quorum.voters) >= wanted:
                return
            time.sleep(LOOK_EVERY_S)
    raise KafkaesqueError(f"the catalog does not get {wanted} voters")
