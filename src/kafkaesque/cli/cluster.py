"""`kafkaesque cluster`: brokers on this machine, and the state of any cluster."""

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import click

from kafkaesque.broker.storage.identity import PATH as IDENTITY
from kafkaesque.cli.cluster_admin import drain, move, rebalance, remove, status
from kafkaesque.cli.cluster_upgrade import upgrade
from kafkaesque.cli.main import Group
from kafkaesque.cli.output import Output, Table
from kafkaesque.cli.recover import recover
from kafkaesque.errors import KafkaesqueError
from kafkaesque.server_config import ServerConfig
from kafkaesque.testing.process import BrokerProcess
from kafkaesque.testing.voters import await_voters

LOOK_EVERY_S = 0.2
BROKERS_MAX = 9
"""On one machine; more would only wait for each other."""


@click.group(cls=Group)
def cluster() -> None:
    """Start brokers on this machine, and manage a cluster."""


for command in (status, drain, move, rebalance, remove, recover, upgrade):
    cluster.add_command(command)


@cluster.command(epilog="Example: kafkaesque cluster up --brokers 3")
@click.option(
    "--brokers",
    type=click.IntRange(1, BROKERS_MAX),
    default=3,
    show_default=True,
    help="How many brokers.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535 - BROKERS_MAX),
    default=ServerConfig().port,
    show_default=True,
    help="Port of the first broker; the others get the next ones. 0 picks free ports.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("cluster-data"),
    show_default=True,
    help="The folder that holds one folder per broker.",
)
def up(brokers: int, port: int, data: Path) -> int:
    """Run several brokers on this machine until ctrl-C.

    They form one cluster. Started again with the same folder, it continues with its records.
    """
    running: list[BrokerProcess] = []
    _on_signals(signal.default_int_handler)
    try:
        rows = _start(running, [data / f"broker-{n + 1}" for n in range(brokers)], port)
        columns = ("broker", "address", "pid", "start ms", "data")
        Output(is_json=False).table(Table(kind="broker", columns=columns, rows=rows))
        where = ",".join(one.bootstrap for one in running)
        _settle(where, brokers)
        click.echo(f"bootstrap: {where}    (ctrl-C stops all of them)")
        return _watch(running)
    finally:
        _stop(running)


def _start(
    running: list[BrokerProcess], folders: Sequence[Path], port: int
) -> list[tuple[object, ...]]:
    """Start all brokers and add them to `running`; return a table row for each.

    Existing ones start together, because none can work without the others. New ones join one after
    the other.
    """
    rows: list[tuple[object, ...]] = []
    starting: list[tuple[BrokerProcess, float]] = []
    for number, folder in enumerate(folders):
        flags = ["--join", running[0].bootstrap] if number else []
        ours = port and port + number
        is_new = not (folder / IDENTITY).exists()
        if is_new:
            rows += map(_started, starting)
            starting.clear()
        # In its own process group: ctrl-C would signal it a second time, which kills it at once.
        broker = BrokerProcess(folder, flags, port=ours, is_apart=True)
        running.append(broker)
        starting.append((broker, time.perf_counter()))
        broker.launch()
        if is_new:
            rows += map(_started, starting)
            starting.clear()
    return rows + [_started(one) for one in starting]


def _started(starting: tuple[BrokerProcess, float]) -> tuple[object, ...]:
    broker, began = starting
    broker.wait()
    took_ms = round((time.perf_counter() - began) * 1000)
    return broker.node, broker.bootstrap, broker.pid, took_ms, str(broker.data)


def _settle(bootstrap: str, brokers: int) -> None:
    """Wait until the cluster survives the loss of any one broker; only warn if it takes long."""
    try:
        await_voters(bootstrap, brokers)
    except KafkaesqueError as error:
        click.echo(f"{error} yet: see kafkaesque doctor", err=True)


def _watch(running: list[BrokerProcess]) -> int:
    """Wait for a signal, or until all have ended; report those that end on their own."""
    stopped: list[int] = []

    def stop(number: int, _: object) -> None:
        stopped.append(number)

    _on_signals(stop)
    ended: set[int] = set()
    while not stopped and len(ended) < len(running):
        time.sleep(LOOK_EVERY_S)
        for one in running:
            if not stopped and one.node not in ended and not one.is_running:
                ended.add(one.node)
                click.echo(f"broker {one.node} has ended: see {one.output}", err=True)
    return 0 if stopped else 1


def _on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Handle ctrl-C, SIGTERM and the loss of the terminal; the brokers see none of them."""
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGTERM, handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # otherwise nohup ignores it
        signal.signal(signal.SIGHUP, handler)


def _stop(running: Sequence[BrokerProcess]) -> None:
    """Stop all of them even if stopping one fails; raises the first error."""
    _on_signals(signal.SIG_IGN)  # or a second ctrl-C would leave the others running
    errors: list[KafkaesqueError] = []
    for one in running:
        is_running = one.is_running
        try:
            code = one.stop()
        except KafkaesqueError as error:
            errors.append(error)
        else:
            # A broker that was still starting has no handler yet and is ended by our signal.
            if is_running and code not in (0, -signal.SIGTERM):
                errors.append(KafkaesqueError(f"broker {one.node} crashed: see {one.output}"))
    if errors:
        raise errors[0]
