"""Every implemented API, with its versions and its two messages.

The table is built from the files in `messages`: each declares an `API`, and the request and the
response named after it. It serves to look up a request's messages and to generate a page of the
reference. A broker advertises the APIs for which it has a handler.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from msgspec import Struct

from kafkaesque.wire import messages
from kafkaesque.wire.message import Api

PRIVATE_KEY_FIRST = 20_000
"""Our own APIs have keys from here upwards. Kafka's are below 100 so far and count upwards.

They are advertised like all others: clients ignore unknown keys.
"""


class Messages(Struct, frozen=True, kw_only=True):
    """An API and the messages that belong to it."""

    api: Api
    request: type[Any]
    response: type[Any]


def modules_of(package: ModuleType) -> Iterator[Any]:
    """Import and yield every module of a package, sorted by name."""
    for found in iter_modules(package.__path__):
        yield import_module(f"{package.__name__}.{found.name}")


def _messages(module: Any) -> Messages:
    api: Api = module.API
    return Messages(
        api=api,
        request=getattr(module, f"{api.name}Request"),
        response=getattr(module, f"{api.name}Response"),
    )


APIS: Mapping[int, Messages] = {
    row.api.key: row
    for row in sorted(map(_messages, modules_of(messages)), key=lambda row: row.api.key)
}
"""By key, in key order."""
