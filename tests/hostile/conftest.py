"""Every test here attacks one real broker, which must be as healthy afterwards as before."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fuzz.attack import RSS_GROWTH_BYTES_MAX
from tests.fuzz.victim import Victim
from tests.fuzz.witness import Witness
from tests.hostile.peers import Hostile


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with Victim(tmp_path_factory.mktemp("victim")) as victim:
        Witness(victim.port).make_topics()
        yield victim


@pytest.fixture
def hostile(victim: Victim) -> Iterator[Hostile]:
    """An attacker of a broker that all tests of a module share; it leaves nothing lasting there."""
    with attacked(victim) as hostile:
        yield hostile


@contextmanager
def attacked(victim: Victim) -> Iterator[Hostile]:
    """Attack; afterwards the broker lives, is small, served another client and blamed no one."""
    witness = Witness(victim.port)
    before = victim.rss_bytes()
    hostile = Hostile(victim)
    yield hostile
    hostile.hang_up()
    assert victim.is_alive
    assert victim.trouble() is None
    assert victim.rss_bytes() - before < RSS_GROWTH_BYTES_MAX
    assert witness.round_trip() is None
