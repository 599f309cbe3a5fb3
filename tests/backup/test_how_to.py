"""The commands of the how-to page, run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Broker
from tests.backup.clusters import contents, put, some_records
from tools.repository import ROOT

PAGE = ROOT / "docs" / "how-to" / "back-up-and-restore.md"


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line) for line in lines]


@pytest.mark.requirement("LOG-5")
def test_every_command_of_the_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Broker() as here, Broker() as new, Broker() as empty, Admin(here.bootstrap) as admin:
        places = {"new-broker:9092": new.bootstrap, "empty-broker:9092": empty.bootstrap}
        admin.topics.create("orders", partitions=2)
        put(admin, "orders", 1, some_records(20))
        admin.groups.commit("billing", {("orders", 1): 7})
        monkeypatch.setenv("KAFKAESQUE_BOOTSTRAP", here.bootstrap)
        for name, *words in commands():
            assert name == "kafkaesque"
            words = [places.get(word, word) for word in words]
            assert run(words) == 0, words
        original = contents(here.bootstrap, "orders")
        assert contents(new.bootstrap, "orders") == original
        assert contents(empty.bootstrap, "orders") == original
        assert contents(here.bootstrap, "restored-orders") == original
        assert contents(here.bootstrap, "orders-of-monday") == original
    assert (tmp_path / "tuesday" / "manifest.json").exists()
