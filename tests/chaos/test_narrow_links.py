"""Three brokers with little bandwidth between them write a large record without an election.

The network consists of network namespaces when run as root, and of slow proxies otherwise.
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.brokers import BrokerProcess
from tests.chaos.faults import missing
from tests.chaos.network import Network
from tests.chaos.proxies import Proxies
from tests.chaos.ways import Ways
from tools.repository import ROOT

pytestmark = [pytest.mark.chaos, pytest.mark.long]

RECORD_BYTES = 20 << 20
MEGABITS = 32
TICK_MS = 200
"""Four times the default, so that a busy machine does not cause an election."""

ELECTION_MS_MAX = 2 * 10 * TICK_MS
SECONDS_MAX = 150
ELECTIONS = "kafkaesque_elections_total"

NETWORKS = {
    "namespaces": pytest.param(
        Network, marks=pytest.mark.skipif(bool(missing("ip", "tc")), reason="needs root, ip and tc")
    ),
    "proxies": Proxies,
}


class World:
    """Three brokers and the network between them."""

    def __init__(self, folder: Path, ways: Ways, stack: ExitStack) -> None:
        (folder / "secret").write_text("known to the brokers alone")
        self._ways = ways
        self._brokers: list[BrokerProcess] = []
        for node in (1, 2, 3):
            place = replace(
                ways.place(node, folder / f"data{node}", folder / "secret"),
                environment={"KAFKAESQUE_BROKER_TICK_MS": str(TICK_MS)},
            )
            join = self._brokers[0].address if node > 1 else ""
            broker = BrokerProcess(place, folder / f"broker{node}.log", join)
            stack.callback(broker.kill)
            broker.start()
            ways.started(node, broker)
            self._brokers.append(broker)

    def ask(self, word: str, *rest: str) -> Any:
        """Run a client command; return its output."""
        bootstrap = ",".join(broker.address for broker in self._brokers)
        command = [sys.executable, "-m", "tests.chaos.far_client", word, bootstrap, *rest]
        done = subprocess.run(
            [*self._ways.clients_prefix, *command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_record_that_takes_longer_than_an_election_timeout_causes_no_election(
    network: type[Ways], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        ways = stack.enter_context(network(3))
        world = World(tmp_path, ways, stack)
        world.ask("create", "orders", "1", "2", "3")
        world.ask("produce", "orders", "1")
        before = world.ask("metric", ELECTIONS)
        ways.narrow(MEGABITS)
        took_ms = world.ask("large", "orders", str(RECORD_BYTES))
        assert took_ms > ELECTION_MS_MAX, "the links are not narrow"
        assert world.ask("metric", ELECTIONS) == before
