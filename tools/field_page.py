"""The page that compares us with other brokers, generated from the stored results."""

from bench.field.report import markdown
from bench.field.results import load
from tools.repository import ROOT

RESULTS = ROOT / "bench" / "results" / "field.json"


WHY = (
    "\n## Where the losses come from\n\n"
    "[What a request costs](../explanation/hot-path.md#against-the-field) shows the profiles.\n"
)


def render() -> str:
    """Return the page."""
    return markdown(load(RESULTS), "../../bench/results/") + WHY
