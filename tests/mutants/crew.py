"""Runs work in fresh processes, one on each core, so that a bug cannot affect the next run."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from tests.mutants.planting import PLANTED

T = TypeVar("T")
Work = tuple[object, ...]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [__name__, "tests.mutants.hunt", *{mutant.target.partition(":")[0] for mutant in PLANTED}]
)


class WorkerDied(Exception):
    """A process ended without a result; it has printed why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[T]):
    """The result of some work, and its cost."""

    result: T
    seconds: float
    """Wall-clock time, which includes what other programs took of the machine."""
    cpu_seconds: float
    """CPU time of the process alone."""


def apart(function: Callable[..., T], *args: object) -> Done[T]:
    """Call a function in a separate process; raises WorkerDied."""
    started = time.monotonic()
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_work, args=(sender, function, args))
    with receiver:
        process.start()
        sender.close()
        try:
            result, cpu_seconds = receiver.recv()
        except EOFError:
            raise WorkerDied(f"{function.__name__} of {args[0]}") from None
        finally:
            process.join()
            process.close()
    return Done(result=result, seconds=time.monotonic() - started, cpu_seconds=cpu_seconds)


def each_apart(function: Callable[..., T], works: Iterable[Work]) -> Iterator[tuple[Work, Done[T]]]:
    """Do many works, as many at a time as there are cores; yield each as it is done.

    Raises WorkerDied.
    """
    with ThreadPoolExecutor(os.cpu_count()) as lanes:
        waiting = {lanes.submit(apart, function, *work): work for work in works}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            for left in waiting:
                left.cancel()


def _work(sender: "Connection", function: Callable[..., object], args: Work) -> None:
    with sender:
        result = function(*args)
        sender.send((result, time.process_time()))
