"""A port that is held for a server which listens later, or again."""

import socket
from pathlib import Path

import pytest

from kafkaesque.testing import Broker
from kafkaesque.testing.ports import HOST, HeldPort
from kafkaesque.testing.process import BrokerProcess


def _may_be_anybodys(port: int) -> bool:
    """Whether one who asks for any port, and would share none, could be given this one."""
    with socket.socket() as stranger:
        try:
            stranger.bind((HOST, port))
        except OSError:
            return False
        return True


def _listener(port: int) -> socket.socket:
    return socket.create_server((HOST, port))


def test_a_held_port_refuses_connections_until_somebody_listens_there_by_name() -> None:
    held = HeldPort()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, held.port))
    for _ in range(2):
        assert not _may_be_anybodys(held.port)
        with _listener(held.port), socket.create_connection((HOST, held.port)):
            pass
    held.release()
    held.release()


def test_a_port_that_nobody_refers_to_any_more_is_let_go() -> None:
    held = HeldPort()
    release = held._release
    assert release.alive
    del held
    assert not release.alive


def test_a_broker_keeps_its_port_while_it_is_down(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.stop()
        assert not _may_be_anybodys(broker.port)
        broker.start()
    process = BrokerProcess(tmp_path / "another")
    assert process.port
    assert not _may_be_anybodys(process.port)
