"""Splits bytes into lines, whatever the bytes are and however they arrive.

A line ends with LF, CR LF or CR NUL. A line that is too long is answered once and skipped without
being stored; one that is not UTF-8 is answered too. The next line is read normally.
"""

from msgspec import Struct

_TRAILING_CR = 1


class BadLine(Struct, frozen=True):
    """A line that cannot be read, and why."""

    reason: str


class LineSplitter:
    """`feed` it bytes, then `take` lines until there is none; buffers little more than one line."""

    def __init__(self, line_bytes_max: int) -> None:
        self._line_bytes_max = line_bytes_max
        self._buffer = bytearray()
        self._searched = 0
        self._is_skipping = False

    @property
    def held_bytes(self) -> int:
        """Bytes fed and not yet taken."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Add bytes; the rest of a line that is too long is dropped at once."""
        self._buffer += data
        if self._is_skipping:
            self._skip()

    def take(self) -> str | BadLine | None:
        """Return the next line without its end, or None if none is complete."""
        if self._is_skipping:
            return None
        found = _find_end(self._buffer, self._searched)
        if found is None:
            # The last byte may be the CR of a split line end.
            self._searched = max(0, len(self._buffer) - _TRAILING_CR)
            if self._searched > self._line_bytes_max:
                self._is_skipping = True
                self._skip()
                return self._too_long()
            return None
        start, end = found
        line = bytes(self._buffer[:start])
        self._drop(end)
        if len(line) > self._line_bytes_max:
            return self._too_long()
        try:
            return line.decode()
        except UnicodeDecodeError:
            return BadLine("the line is not UTF-8")

    def _skip(self) -> None:
        found = _find_end(self._buffer, 0)
        if found is None:
            ends_in_cr = self._buffer.endswith(b"\r")
            self._drop(len(self._buffer) - (_TRAILING_CR if ends_in_cr else 0))
            return
        self._drop(found[1])
        self._is_skipping = False

    def _drop(self, size: int) -> None:
        del self._buffer[:size]
        self._searched = 0

    def _too_long(self) -> BadLine:
        return BadLine(f"a line has at most {self._line_bytes_max} bytes; this one was skipped")


def _find_end(data: bytearray, start: int) -> tuple[int, int] | None:
    """Return the range of the first line end; two searches beat one regular expression."""
    newline = data.find(b"\n", start)
    nul = data.find(b"\r\0", start, len(data) if newline == -1 else newline)
    if nul != -1:
        return nul, nul + 2
    if newline == -1:
        return None
    has_return = newline > 0 and data[newline - 1] == ord("\r")
    return newline - has_return, newline + 1
