"""The reference page of the APIs, generated from their messages and handlers."""

from kafkaesque.server.edge.dispatch import SERVED
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.message import Api
from tools.repository import SOURCE

_HEAD = """\
# Kafka APIs and versions

Every API whose messages exist here, with the versions that are read and written. Generated from
`src/kafkaesque/wire/messages` and `src/kafkaesque/server/handlers` by `make docs`; do not edit.

*Advertised* is what a broker returns to clients that ask; an API without a handler is *not served*.
*Flexible* is the first version with compact lengths and tagged fields. Keys from 20000 are our own:
other clients skip keys that they do not know.

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
        _range(first, api.last) if api.key in SERVED else "not served",
        flexible,
        link,
    )
    assert (SOURCE.parent.parent / path).exists()
    return "| " + " | ".join(cells) + " |\n"


def render() -> str:
    """Return the page."""
    return _HEAD + "".join(_row(row.api, row.request.__module__) for row in APIS.values())
