"""A seed is a run: repeated runs are identical, in this process and in others."""

import os
import subprocess
import sys

import pytest

from kafkaesque.sim.run import run_seed
from tests.sim.fingerprint import fingerprint
from tools.repository import ROOT

SEEDS = (2, 3, 11)


def in_another_process(hash_seed: str) -> list[str]:
    arguments = [sys.executable, "-m", "tests.sim.fingerprint", *map(str, SEEDS)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        arguments, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_twice_is_the_same_run_down_to_the_bytes_of_the_logs(seed: int) -> None:
    assert fingerprint(seed) == fingerprint(seed)


def test_a_seed_twice_gives_the_same_report() -> None:
    assert run_seed(8, steps=500) == run_seed(8, steps=500)


def test_another_seed_is_another_run() -> None:
    assert fingerprint(2)[1:] != fingerprint(3)[1:]


def test_the_order_of_sets_and_hashes_has_no_influence() -> None:
    here = [line for seed in SEEDS for line in fingerprint(seed)]
    assert in_another_process("1") == here
    assert in_another_process("4242") == here
