"""Every module describes itself, is used, and imports only what is declared."""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping

from kafkaesque.cli.main import COMMANDS
from kafkaesque.spark.pipelines.catalog import PIPELINES
from tools.repository import ROOT, imported_names, module_name, python_files, relative

CODE = ("src", "tests", "bench", "tools")
ENTRY_POINTS = {
    "kafkaesque.__main__",
    "kafkaesque.testing.pytest_plugin",
    "kafkaesque.spark.daemon",  # Spark starts it by its name
}
PLUGINS = {
    "src/kafkaesque/testing/pytest_plugin.py: pytest",
    "src/kafkaesque/cli/demo_traffic.py: aiokafka.AIOKafkaConsumer",
    "src/kafkaesque/cli/demo_traffic.py: aiokafka",  # used if it is installed
}
"""Modules that only their own host may import."""

WAITING_FOR_A_USER: Mapping[str, str] = {}
"""Modules without an importer yet, and which module it will be."""


def modules() -> dict[str, str]:
    """Return every module of the package that is not a package itself, with its mirrored test.

    Tests are grouped by package, whatever room a module is in.
    """
    found = {}
    for path in python_files("src"):
        if path.name != "__init__.py":
            package, *_ = path.parent.relative_to(ROOT / "src" / "kafkaesque").parts or (".",)
            mirror = f"tests/{package}/test_{path.stem.strip('_')}.py".replace("/./", "/")
            found[module_name(path)] = mirror
    return found


def users() -> dict[str, set[str]]:
    """Return, for each imported name, the files that import it; tables import what they list."""
    found: dict[str, set[str]] = {}
    for path in python_files(*CODE, "examples"):
        for name in imported_names(path):
            found.setdefault(name, set()).add(relative(path))
    for target in COMMANDS.values():
        found.setdefault(target.partition(":")[0], set()).add("the table of commands")
    for pipeline in PIPELINES.values():
        found.setdefault(pipeline.module, set()).add("the table of pipelines")
    for path in python_files("src/kafkaesque/wire/messages", "src/kafkaesque/server/handlers"):
        found.setdefault(module_name(path), set()).add("the table of APIs")
    return found


def test_every_module_has_a_docstring() -> None:
    bare = [
        relative(path)
        for path in python_files("src", "bench", "tools")
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert bare == []


def test_every_module_is_imported_by_more_than_its_own_test() -> None:
    used = users()
    unused = {name for name, mirror in modules().items() if not used.get(name, set()) - {mirror}}
    assert unused - ENTRY_POINTS - WAITING_FOR_A_USER.keys() == set()


def test_a_module_with_a_user_is_not_listed_as_waiting_for_one() -> None:
    used = users()
    own = modules()
    found = {name for name in WAITING_FOR_A_USER if used.get(name, set()) - {own[name]}}
    assert found == set(), "take these out of WAITING_FOR_A_USER"


def test_the_package_imports_only_what_it_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[^\w-]", line, maxsplit=1)[0] for line in project["dependencies"]}
    extras = project["optional-dependencies"]["spark"]
    spark = {re.split(r"[^\w-]", line, maxsplit=1)[0] for line in extras}
    undeclared = {
        f"{relative(path)}: {name}"
        for path in python_files("src")
        for name in imported_names(path)
        if (top := name.partition(".")[0]) != "kafkaesque"
        and top not in sys.stdlib_module_names
        and top.replace("_", "-") not in declared
        and not (top in spark and path.is_relative_to(ROOT / "src" / "kafkaesque" / "spark"))
    }
    assert undeclared - PLUGINS == set()


def test_every_command_in_the_table_has_its_module() -> None:
    targets = {target.partition(":")[0] for target in COMMANDS.values()}
    assert targets <= modules().keys()
