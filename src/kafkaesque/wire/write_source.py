"""Generates the Python source that writes one struct at one version.

The generated functions pass byte strings to `write`, in order. Neighbours of fixed size are packed
in one call; record batches are passed on without a copy.
"""

from struct import Struct
from typing import Any

from kafkaesque.wire.errors import UnencodableMessage
from kafkaesque.wire.kinds import Array, Blob, Fixed, Kind, Nested, Opaque, Text
from kafkaesque.wire.message import Field, fields_of, parts_of
from kafkaesque.wire.source import Source
from kafkaesque.wire.varint import write_varint


def null(name: str, version: int) -> UnencodableMessage:
    """Return the error for a null that the version does not allow."""
    return UnencodableMessage(f"{name} is null, which version {version} does not allow")


NAMES: dict[str, Any] = {"varint": write_varint, "null": null, "join": b"".join}
"""What the generated functions call."""


class StructWriter:
    """Adds `write_<struct>(m, write)` and those of its parts to a source."""

    def __init__(self, source: Source, version: int, *, flexible: bool) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []

    def add(self, cls: type[Any]) -> str:
        """Add the code that writes `cls` and return the function's name."""
        name = f"write_{cls.__name__}"
        source = self._source
        if name in source.names:
            return name
        fields = [field for field in fields_of(cls) if field.present(self._version)]
        for part in parts_of(fields):
            self.add(part)
        source.names[name] = None
        with source.block(f"def {name}(m, write):"):
            for field in fields:
                if field.tag is None:
                    self._write_field(field)
            if self._flexible:
                self._write_tags([field for field in fields if field.tag is not None])
            self._flush()
            source.line("return")
        return name

    def _flush(self) -> None:
        """Pack the pending fields; `x` is the zero byte of an empty section of tags."""
        if not self._run:
            return
        letters = "".join(letter for letter, _ in self._run)
        if letters == "x":
            self._run.clear()
            self._source.line(r'write(b"\0")')
            return
        pack = self._source.constant(Struct(">" + letters).pack)
        values = ", ".join(value for letter, value in self._run if letter != "x")
        self._run.clear()
        self._source.line(f"write({pack}({values}))")

    def _write_field(self, field: Field) -> None:
        source = self._source
        value = f"m.{field.name}"
        if field.nullable_since is None:
            self._write(field.kind, value)
            return
        self._flush()
        local = source.fresh("value")
        source.line(f"{local} = {value}")
        with source.block(f"if {local} is None:"):
            if field.nullable(self._version):
                source.line(f"write({self._null_bytes(field.kind)!r})")
            else:
                source.line(f"raise null({field.name!r}, {self._version})")
        with source.block("else:"):
            if isinstance(field.kind, Nested) and field.nullable(self._version):
                source.line(r'write(b"\x01")')
            self._write(field.kind, local)
            self._flush()

    def _null_bytes(self, kind: Kind) -> bytes:
        if isinstance(kind, Nested):
            return b"\xff"
        if self._flexible:
            return b"\0"
        return b"\xff\xff" if isinstance(kind, Text) else b"\xff\xff\xff\xff"

    def _write(self, kind: Kind, value: str) -> None:
        source = self._source
        match kind:
            case Fixed(letter):
                self._run.append((letter, value))
            case Nested(struct):
                self._flush()
                source.line(f"write_{struct.__name__}({value}, write)")
            case Text():
                text = source.fresh("text")
                source.line(f"{text} = {value}.encode()")
                self._write_count(f"len({text})", "h")
                source.line(f"write({text})")
            case Blob() | Opaque():
                self._write_count(f"len({value})", "i")
                source.line(f"write({value})")
            case Array(element):
                self._write_elements(element, value)

    def _write_count(self, count: str, old_letter: str) -> None:
        if self._flexible:
            self._flush()
            self._source.line(f"write(varint({count} + 1))")
        else:
            self._run.append((old_letter, count))
            self._flush()

    def _write_elements(self, element: Fixed | Text | Nested, value: str) -> None:
        source = self._source
        items = source.fresh("items")
        source.line(f"{items} = {value}")
        self._write_count(f"len({items})", "i")
        if isinstance(element, Fixed):
            pack = source.constant(Struct(">" + element.letter).pack)
            source.line(f"if {items}: write(join(map({pack}, {items})))")
            return
        item = source.fresh("item")
        with source.block(f"for {item} in {items}:"):
            self._write(element, item)
            self._flush()

    def _write_tags(self, known: list[Field]) -> None:
        source = self._source
        if not known:
            self._run.append(("x", ""))
            return
        self._flush()
        differs = {
            field.name: f"m.{field.name} != {source.constant(field.default)}" for field in known
        }
        source.line("tags = " + " + ".join(f"({test})" for test in differs.values()))
        source.line("write(varint(tags))")
        with source.block("if tags:"):
            for field in known:
                with source.block(f"if {differs[field.name]}:"):
                    # The length comes first, so the value is encoded separately.
                    source.line("outer, parts = write, []")
                    source.line("write = parts.append")
                    self._write_field(field)
                    self._flush()
                    source.line("write, body = outer, join(parts)")
                    source.line(f"write(varint({field.tag}) + varint(len(body)))")
                    source.line("write(body)")
