"""Every event is declared in full, and provoked by a test on the code that emits it."""

import ast
import re
from collections import Counter

from kafkaesque.events import EVENTS, Event, meaning
from tools.repository import python_files

TAKEN = {"time", "level", "component", "event", "logger", "trace"}
"""The fields that each JSON line has, or may have, itself."""


def provoked() -> set[str]:
    """Return every event that a test is marked with."""
    return {
        argument.value
        for path in python_files("tests")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func) == "pytest.mark.event"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_every_event_has_a_test_that_provokes_it() -> None:
    assert EVENTS.keys() - provoked() == set()


def test_every_event_that_a_test_names_exists() -> None:
    assert provoked() - EVENTS.keys() == set()


def test_event_names_are_unique_and_each_event_has_an_explanation() -> None:
    declared = [one for one in Event.__subclasses__() if one.__module__ == Event.__module__]
    assert Counter(one.name for one in declared) == Counter(list(EVENTS))
    for event in declared:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", event.name)
        assert "component" in vars(event)
        assert meaning(event).endswith(".")


def test_no_field_hides_a_field_of_every_line() -> None:
    fields = {field for event in EVENTS.values() for field in event.__struct_encode_fields__}
    assert fields & TAKEN == set()
