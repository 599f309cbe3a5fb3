"""Unmodified third-party clients behind one interface, so that all are tested the same way."""
