"""Wrapper scripts for Spark's programs."""

import os
from pathlib import Path


def write_script(script: Path, text: str) -> None:
    """Write an executable file unless it exists; another process may do the same."""
    if script.exists() and script.read_text() == text:
        return
    script.parent.mkdir(parents=True, exist_ok=True)
    fresh = script.with_suffix(f".{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(0o755)
    fresh.replace(script)
