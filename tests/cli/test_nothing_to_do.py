"""Commands with `--yes`, run without it: exit code 0 if there is nothing to do, otherwise 1."""

from collections.abc import Iterator

import click
import pytest
from confluent_kafka import Consumer, TopicPartition

from kafkaesque.cli.main import cli, run
from kafkaesque.cli.options import NOT_DONE
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Broker
from tools.cli_page import commands

NOTHING = {
    "cluster drain 1 --undo": "broker 1 already takes partitions",
    "cluster move orders 0 --cancel": "partition 0 of topic orders is not being moved",
    "cluster move orders 0 1": "partition 0 of topic orders is there, or on its way there already",
    "cluster rebalance": "nothing to do: partitions and leaders are balanced",
    "cluster upgrade": "every level is already the highest that all brokers support",
    "dlq redrive orders": "nothing to send back: 0",
    "group reset readers --to 0": "group readers is there already",
    "topic alter orders --replicas 1": "topic orders has 1 replica already",
}
SOMETHING = {
    "cluster drain 1": "to move off broker 1: nothing was changed; add --yes",
    "cluster remove 1": "broker 1 to remove: nothing was changed; add --yes",
    "group delete readers": "1 group to delete: nothing was changed; add --yes",
    "group reset readers --to end --topic letters": "group readers would move: nothing was changed",
    "topic delete orders": "1 topic to delete: nothing was changed; add --yes",
    "broker alter --dry-run --set message.max.bytes=1000000": "could be changed",
}
ELSEWHERE = {
    "cluster recover",  # of a stopped broker: test_cluster_admin.py
    "log repair",  # the same: test_log_repair.py
    "transaction abort",  # refused if nothing is open: test_transaction.py
    "transaction commit",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        with Admin(running.bootstrap) as admin:
            admin.topics.create("orders", partitions=1)
            admin.topics.create("letters", partitions=1)
        reader = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "readers"})
        reader.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        reader.close()
        yield running


def call(broker: Broker, capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, str]:
    code = run([*words.split(), "--bootstrap", broker.bootstrap])
    return code, "".join(capsys.readouterr())


@pytest.mark.parametrize("words", NOTHING)
def test_when_there_is_nothing_to_do_a_sentence_says_so_and_the_code_is_0(
    words: str, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = call(broker, capsys, words)
    assert (code, NOTHING[words] in said, "add --yes" in said) == (0, True, False), said


@pytest.mark.parametrize("words", SOMETHING)
def test_a_change_that_was_only_shown_exits_with_1(
    words: str, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = call(broker, capsys, words)
    assert (code, SOMETHING[words] in said) == (NOT_DONE, True), said


def test_every_command_with_yes_is_tested() -> None:
    wary = {
        words.removeprefix("kafkaesque ")
        for words, command in commands(cli, ("kafkaesque",))
        if not isinstance(command, click.Group)
        and any("--yes" in one.opts for one in command.params)
    }
    tried = {one for one in wary for words in (*NOTHING, *SOMETHING) if words.startswith(one)}
    assert wary - tried == ELSEWHERE & wary
