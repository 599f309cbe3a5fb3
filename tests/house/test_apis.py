"""Every API has all its parts: a new one fails here until it does."""

import re
from collections.abc import Set

from kafkaesque.server.edge.dispatch import HANDLERS, SERVED
from kafkaesque.wire.apis import APIS
from tools.repository import SOURCE, python_files

MESSAGES_ONLY = {
    # Brokers have no authentication or authorization yet.
    "AlterUserScramCredentials",
    "CreateAcls",
    "DeleteAcls",
    "DescribeAcls",
    "DescribeUserScramCredentials",
    "SaslAuthenticate",
    "SaslHandshake",
}
"""APIs that are not served, on purpose."""


def served() -> Set[str]:
    return {row.api.name for row in SERVED.values()}


def requested() -> Set[str]:
    """Return the APIs whose requests the tests of the server build."""
    built = re.compile(r"\b(\w+)Request\(")
    return {
        name for path in python_files("tests/server") for name in built.findall(path.read_text())
    }


NEEDS = {
    "a handler in server/handlers": served,
    "a test in tests/server that sends its request": requested,
}
"""The parts of an API, and the names of those that have them."""


def test_every_api_has_all_its_parts() -> None:
    names = {row.api.name for row in APIS.values()} - MESSAGES_ONLY
    missing = [f"{name}: {what}" for what, having in NEEDS.items() for name in names - having()]
    assert missing == []


def test_a_served_api_is_not_an_exception() -> None:
    assert served() & MESSAGES_ONLY == set(), "take these out of MESSAGES_ONLY"


def test_no_two_files_are_for_the_same_api() -> None:
    for folder, table in (("wire/messages", APIS), ("server/handlers", HANDLERS)):
        files = [path for path in (SOURCE / folder).glob("*.py") if path.name != "__init__.py"]
        assert len(files) == len(table), folder


def test_a_handler_has_the_name_of_its_messages() -> None:
    for key, handle in HANDLERS.items():
        messages = APIS[key].request.__module__
        assert handle.__module__.rpartition(".")[2] == messages.rpartition(".")[2]
