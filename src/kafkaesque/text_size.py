"""Memory that a string takes, to bound what clients leave behind.

Python stores a string with any character beyond the first 65,536 at four bytes per character, so
neither its characters nor its encoded bytes give its size.
"""

TEXT_BYTES = 80
"""Overhead of a string beside its characters."""

_WIDEST_BYTES = 4


def chars_bytes(text: str) -> int:
    """Return the most that a string's characters take; reads none, so it suits hot paths.

    A second copy, which Python keeps of an encoded string, can take as much again.
    """
    return len(text) if text.isascii() else _WIDEST_BYTES * len(text)


def utf8_bytes(text: str) -> int:
    """Return the encoded length of a string."""
    return len(text) if text.isascii() else len(text.encode())
