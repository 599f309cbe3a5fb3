"""A wall clock of a broker's own that jumps when a test says so; needs a C compiler."""

import struct
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_name("wall_clock.c")


class WallClock:
    """What one broker holds for the time of day, as seconds before or after the truth."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"{name}.clock"
        self._library = _library(folder)
        self._file.write_bytes(bytes(8))

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables with which a broker gets this clock."""
        return {"LD_PRELOAD": str(self._library), "WALL_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Show a time that is off by this much, from now on."""
        with self._file.open("r+b") as file:  # in place: the broker has mapped this very file
            file.write(struct.pack("=q", seconds))


@cache
def _library(folder: Path) -> Path:
    made = folder / "wall_clock.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return made
