"""The reference page of the APIs, made from wire/apis.py."""

from kafkaesque.wire.apis import APIS
from kafkaesque.wire.message import Api
from tools.repository import SOURCE

_HEAD = """\
# Kafka APIs and versions

Every API whose messages exist here, with the versions that are read and written. Generated from
`src/kafkaesque/wire/apis.py` by `make docs`; do not edit.

*Advertised* is what a broker that serves the API tells a client which asks. *Flexible* is the first
version with compact lengths and tagged fields. Keys from 20000 on are our own
(`src/kafkaesque/wire/private_keys.py`): other clients skip what they do not know.

| key | API | versions | advertised | flexible | messages |
|---|---|---|---|---|---|
"""


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"  # noqa: RUF001


def _row(api: Api, module: str) -> str:
    first = api.first if api.advertised_first is None else api.advertised_first
    flexible = f"from {api.flexible_since}" if api.flexible_since <= api.last else "never"
    path = "src/" + module.replace(".", "/") + ".py"
    link = f"[`{path.rpartition('/')[2]}`](../../{path})"
    cells = (
        str(api.key),
        api.name,
        _range(api.first, api.last),
        _range(first, api.last),
        flexible,
        link,
    )
    assert (SOURCE.parent.parent / path).exists()
    return "| " + " | ".join(cells) + " |\n"


def render() -> str:
    """Return the page."""
    rows = (_row(row.api, row.request.__module__) for _, row in sorted(APIS.items()))
    return _HEAD + "".join(rows)
