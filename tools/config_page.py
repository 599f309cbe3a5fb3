"""The reference page of the settings, generated from their classes: fields, defaults, reasons."""

import ast
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from kafkaesque import cluster_config, config, coordinator_config, server_config, settings
from kafkaesque.client import config as client_config
from kafkaesque.gossip import config as gossip_config
from kafkaesque.net import config as link_config
from kafkaesque.record import limits as record_limits

MODULES = (
    record_limits,
    client_config,
    config,
    server_config,
    coordinator_config,
    cluster_config,
    link_config,
    gossip_config,
)
"""In the order of the page."""
_CLASSES = {name: value for module in MODULES for name, value in vars(module).items()}

_HEAD = """\
# Settings and limits

Every setting with its default and the reason for it. Generated from the classes of settings by
`make docs`; do not edit.

Sizes are in bytes and times in milliseconds unless the name says otherwise.

The settings that have a variable here go into a section of that name in the TOML file given by
`--config` (or by `KAFKAESQUE_CONFIG`). A flag wins over the environment variable, the variable over
the file, and the file over the default:

```toml
[server]
port = 9092

[limits]
connections_max = 2_000
```

Unknown settings and invalid values are refused when the broker starts.
"""


def _reasons(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield each field that is followed by a docstring, with that string."""
    for statement, following in pairwise(definition.body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(reason))),
            ):
                yield name, " ".join(reason.split())


def _shown(default: object) -> str:
    if default is dataclasses.MISSING:
        return "none: required"
    if dataclasses.is_dataclass(default):
        return f"those of {type(default).__name__}"
    if isinstance(default, int) and not isinstance(default, bool):
        return f"{default:,}"
    if default == Path():
        return "none"
    if isinstance(default, Path | StrEnum):
        return f"`{default}`"
    return f"`{default!r}`"


def _default(field: "dataclasses.Field[object]") -> str:
    if field.default_factory is not dataclasses.MISSING:
        return _shown(field.default_factory())
    return _shown(field.default)


def undocumented() -> list[str]:
    """Return `Class.field` for every setting without a reason."""
    return [
        f"{definition.name}.{field.name}"
        for definition in _classes()
        for field in _fields(definition)
        if field.name not in dict(_reasons(definition))
    ]


def _classes() -> list[ast.ClassDef]:
    return [
        node
        for module in MODULES
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef) and dataclasses.is_dataclass(_CLASSES[node.name])
    ]


def _fields(definition: ast.ClassDef) -> tuple["dataclasses.Field[object]", ...]:
    return dataclasses.fields(_CLASSES[definition.name])


def _rows(definition: ast.ClassDef, reasons: Mapping[str, str]) -> Iterator[str]:
    for field in _fields(definition):
        reason = reasons.get(field.name, "").replace("|", "\\|")
        variable = _variable(definition, field.name)
        yield f"| `{field.name}` | {_default(field)} | {variable}{reason} |"


def _section(definition: ast.ClassDef) -> str | None:
    cls = _CLASSES[definition.name]
    return next((name for name, found in settings.SECTIONS.items() if found is cls), None)


def _variable(definition: ast.ClassDef, field: str) -> str:
    section = _section(definition)
    if section is None:
        return ""
    key = settings.KEYS.get(f"{section}.{field}")
    return "| " if key is None else f"`{key.variable}` | "


def part(definition: ast.ClassDef) -> str:
    """Return the section about one class."""
    section = _section(definition)
    rows = _rows(definition, dict(_reasons(definition)))
    head = ["| setting | default | why |", "|---|---|---|"]
    title = f"## {definition.name}"
    if section is not None:
        head = ["| setting | default | environment | why |", "|---|---|---|---|"]
        title = f"## `[{section}]`"
    table = "\n".join([*head, *rows])
    return f"{title}\n\n{ast.get_docstring(definition) or ''}\n\n{table}"


def parts(*names: str) -> list[str]:
    """Return the sections about some classes, or about all if none is named."""
    return [part(one) for one in _classes() if not names or one.name in names]


def render() -> str:
    """Return the page."""
    return "\n\n".join([_HEAD.strip(), *parts()]) + "\n"
