"""What a text takes in memory, for whoever bounds what clients leave behind.

Python keeps a text with one character beyond the first 65,536 at four bytes for each of them, so
that neither its characters nor its encoded bytes tell what it takes.
"""

TEXT_BYTES = 80
"""What a text takes beside its characters."""

_WIDEST_BYTES = 4


def chars_bytes(text: str) -> int:
    """Return what the characters of a text take at most; for hot paths too, it reads none.

    A second copy, which Python keeps of what was encoded, can take as much again.
    """
    return len(text) if text.isascii() else _WIDEST_BYTES * len(text)


def utf8_bytes(text: str) -> int:
    """Return how long a text is when it is encoded."""
    return len(text) if text.isascii() else len(text.encode())
