"""x."""
from pathlib import Path
from bench.field.results import Results
def write(results: Results, folder: Path) -> None:
    """x."""
