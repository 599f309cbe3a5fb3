"""The fixtures as users meet them: in separate runs of pytest, alone and with workers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kafkaesque

SOURCE = str(Path(kafkaesque.__file__).parents[1])
PLUGIN = "kafkaesque.testing.pytest_plugin"

USERS_TESTS = """
import socket
import pytest
from kafkaesque.testing import Broker

SEEN = []

def test_the_broker_runs(broker, topic):
    assert isinstance(broker, Broker)
    socket.create_connection(("127.0.0.1", broker.port)).close()
    SEEN.append((broker, topic))

@pytest.mark.parametrize("odd", ["a b/c", "ü" * 300])
def test_it_is_the_same_one_and_the_topic_another(broker, topic, odd):
    assert len(topic) <= 249
    assert topic.replace("-", "").replace("_", "").isalnum() and topic.isascii()
    assert topic not in [other for _, other in SEEN]
    assert all(other is broker for other, _ in SEEN)
    SEEN.append((broker, topic))
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_users.py").write_text(USERS_TESTS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_tests_share_one_broker_and_have_separate_topics(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = run(tmp_path, "-W", "error", *options)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_a_users_own_fixture_takes_precedence(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef broker(): return 'mine'\n"
    )
    done = run(tmp_path, "-k", "runs")
    assert "isinstance('mine'" in done.stdout


def test_our_package_is_not_imported_before_a_test_asks_for_it() -> None:
    program = (
        f"import sys, {PLUGIN}; "
        "print(sorted(name for name in sys.modules if name.startswith('kafkaesque')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(["kafkaesque", "kafkaesque.testing", PLUGIN])
