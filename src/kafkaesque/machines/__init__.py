"""Replicated state as pure machines: decide what to write, apply what was written."""
