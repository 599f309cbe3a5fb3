"""A port that is reserved for a server which listens later, or again."""

import socket
from pathlib import Path

import pytest

from kafkaesque.testing import Broker
from kafkaesque.testing.ports import HOST, HeldPort
from kafkaesque.testing.process import BrokerProcess


def _may_be_anybodys(port: int) -> bool:
    """Whether a program that asks for any port, and shares none, could get this one."""
    with socket.socket() as stranger:
        try:
            stranger.bind((HOST, port))
        except OSError:
            return False
        return True


def _listener(port: int) -> socket.socket:
    return socket.create_server((HOST, port))


def test_a_reserved_port_refuses_connections_until_a_server_listens_there_by_number() -> None:
    held = HeldPort()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, held.port))
    for _ in range(2):
        assert not _may_be_anybodys(held.port)
        with _listener(held.port), socket.create_connection((HOST, held.port)):
            pass
    held.release()
    held.release()


def test_an_unreferenced_port_is_released() -> None:
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
