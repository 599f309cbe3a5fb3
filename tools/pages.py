"""Writes the generated pages of docs/, or with `--check` reports stale ones."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools import (
    apis_page,
    broker_settings_page,
    cli_page,
    clients_page,
    config_page,
    damage_page,
    events_page,
    field_page,
    figures_page,
    index_page,
    limits_page,
    map_page,
    metrics_page,
    requirements_page,
    spark_options_page,
    topic_settings_page,
)
from tools.repository import REFERENCE, relative

PAGES: Mapping[Path, Callable[[], str]] = {
    REFERENCE / "apis.md": apis_page.render,
    REFERENCE / "cli.md": cli_page.render,
    REFERENCE / "clients.md": clients_page.render,
    REFERENCE / "config.md": config_page.render,
    damage_page.PAGE: damage_page.render,
    REFERENCE / "events.md": events_page.render,
    REFERENCE / "field.md": field_page.render,
    REFERENCE / "figures.md": figures_page.render,
    REFERENCE / "limits.md": limits_page.render,
    map_page.PAGE: map_page.render,
    map_page.PICTURE: map_page.render_picture,
    REFERENCE / "metrics.md": metrics_page.render,
    REFERENCE / "requirements.md": requirements_page.render,
    REFERENCE / "spark-options.md": spark_options_page.render,
    REFERENCE / "broker-settings.md": broker_settings_page.render,
    REFERENCE / "topic-settings.md": topic_settings_page.render,
    index_page.DOCS / "README.md": index_page.render,  # last: it quotes the others
}


def stale() -> list[Path]:
    """Return the pages that differ from what would be generated now."""
    return [
        path for path, render in PAGES.items() if not path.exists() or path.read_text() != render()
    ]


def main() -> int:
    """Write all pages, or only check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a page is stale"
    )
    if parser.parse_args().check:
        old = stale()
        for path in old:
            print(f"{relative(path)} is stale; run: make docs", file=sys.stderr)
        return 1 if old else 0
    for path, render in PAGES.items():
        path.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
