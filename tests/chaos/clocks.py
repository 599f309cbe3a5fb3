"""A separate wall clock for a broker, which jumps when a test says so; needs a C compiler."""

import struct
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_name("wall_clock.c")


class WallClock:
    """The time of day as one broker sees it, in seconds ahead of or behind the real time."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"{name}.clock"
        self._library = _library(folder)
        self._file.write_bytes(bytes(8))

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables that give a broker this clock."""
        return {"LD_PRELOAD": str(self._library), "WALL_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Shift the clock by this much from now on."""
        with self._file.open("r+b") as file:  # in place: the broker has mapped this very file
            file.write(struct.pack("=q", seconds))


@cache
def _library(folder: Path) -> Path:
    made = folder / "wall_clock.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return made
