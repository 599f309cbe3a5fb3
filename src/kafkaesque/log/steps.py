"""Shared parts of work on closed segments that runs in steps between other work.

Nothing here blocks: while a sync is under way, a step only reports that it is waiting.
"""

from collections.abc import Iterator
from enum import Enum, auto

from kafkaesque.errors import DiskFull
from kafkaesque.log.disk import File
from kafkaesque.log.disk_errors import translate
from kafkaesque.log.segment import Segment
from kafkaesque.log.segments import Segments


class Step(Enum):
    """The result of one step."""

    WORKED = auto()
    WAITED = auto()
    """Something is under way: there is nothing to do before it is done."""


def synced(segments: Segments, files: list[File], folders: list[str]) -> Iterator[Step]:
    """Wait, in steps, until these are durable: syncing a large file takes long."""
    answers: list[OSError | None] = []
    segments.disk.sync(files, folders, answers.append)
    while not answers:
        yield Step.WAITED
    if answers[0] is not None:
        raise translate(answers[0], segments.folder)


def write_index(segments: Segments, segment: Segment) -> Iterator[Step]:
    """Write the index files, if there is room; without them they are rebuilt when needed."""
    index = segment.index
    try:
        file = index.begin_writing()
    except DiskFull:
        return
    is_finished = False
    try:
        yield from synced(segments, [file], [])
        if segments.holds(segment) and segment.is_loaded and segment.index is index:
            is_finished = True
            index.finish_writing(file)
    except DiskFull:
        index.remove_files()
    finally:
        if not is_finished:
            index.give_up_writing(file)
