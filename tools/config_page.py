"""The reference page of the settings, made from config.py: fields, defaults and their reasons."""

import ast
import dataclasses
from collections.abc import Iterator, Mapping
from itertools import pairwise

from kafkaesque import config
from tools.repository import SOURCE

_HEAD = """\
# Settings and limits

Every setting with its default and the reason for it. Generated from `src/kafkaesque/config.py` by
`make docs`; do not edit.

Sizes are in bytes and times in milliseconds unless the name says otherwise.
"""


def _reasons(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield each field that is followed by a string, with that string."""
    for statement, following in pairwise(definition.body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(reason))),
            ):
                yield name, " ".join(reason.split())


def _shown(default: object) -> str:
    if default is dataclasses.MISSING:
        return "none: it must be given"
    if dataclasses.is_dataclass(default):
        return f"those of {type(default).__name__}"
    if isinstance(default, int) and not isinstance(default, bool):
        return f"{default:,}"
    if dataclasses.is_dataclass(default):
        return f"those of `{type(default).__name__}`"
    return f"`{default!r}`"


def _default(field: "dataclasses.Field[object]") -> str:
    if field.default_factory is not dataclasses.MISSING:
        return _shown(field.default_factory())
    return _shown(field.default)


def undocumented() -> list[str]:
    """Return `Class.field` for every setting that gives no reason."""
    tree = ast.parse((SOURCE / "config.py").read_text())
    return [
        f"{definition.name}.{field.name}"
        for definition in _classes(tree)
        for field in _fields(definition)
        if field.name not in dict(_reasons(definition))
    ]


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and dataclasses.is_dataclass(getattr(config, node.name))
    ]


def _fields(definition: ast.ClassDef) -> tuple["dataclasses.Field[object]", ...]:
    return dataclasses.fields(getattr(config, definition.name))


def _rows(definition: ast.ClassDef, reasons: Mapping[str, str]) -> Iterator[str]:
    for field in _fields(definition):
        reason = reasons.get(field.name, "").replace("|", "\\|")
        yield f"| `{field.name}` | {_default(field)} | {reason} |"


def render() -> str:
    """Return the page."""
    sections = [_HEAD.strip()]
    for definition in _classes(ast.parse((SOURCE / "config.py").read_text())):
        rows = _rows(definition, dict(_reasons(definition)))
        table = "\n".join(["| setting | default | why |", "|---|---|---|", *rows])
        sections.append(f"## {definition.name}\n\n{ast.get_docstring(definition) or ''}\n\n{table}")
    return "\n\n".join(sections) + "\n"
