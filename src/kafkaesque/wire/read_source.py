"""Generates the Python source that reads one struct at one version.

The result resembles hand-written code: neighbours of fixed size, the first byte of a length and
the count of tagged fields are unpacked in one call; structs are read by functions of their own.
Missing bytes raise `struct.error` or IndexError, which `codec` turns into MalformedFrame; lengths
are compared with the remaining bytes before anything is taken.
"""

from struct import Struct
from typing import Any

from kafkaesque.errors import MalformedFrame
from kafkaesque.types import Buffer
from kafkaesque.wire.kinds import Array, Blob, Fixed, Kind, Nested, Opaque, Text
from kafkaesque.wire.message import Field, fields_of, parts_of
from kafkaesque.wire.source import Source
from kafkaesque.wire.varint import read_varint

_TAKE = {
    Text: 'str(data[pos:end], "utf-8")',
    Blob: "bytes(data[pos:end])",
    Opaque: "data[pos:end]",
}


def short(name: str) -> MalformedFrame:
    """Return the error for a length past the end of the frame."""
    return MalformedFrame(f"{name} is longer than the frame")


def null(name: str) -> MalformedFrame:
    """Return the error for a null that is not allowed."""
    return MalformedFrame(f"{name} is null")


def skip_tags(data: Buffer, position: int, size: int) -> int:
    """Return the position after a section of unknown tagged fields."""
    count, position = read_varint(data, position)
    for _ in range(count):  # ends: every field takes two bytes, and data ends with an IndexError
        _, position = read_varint(data, position)
        length, position = read_varint(data, position)
        position += length
        if position > size:
            raise short("a tagged field")
    return position


NAMES: dict[str, Any] = {
    "short": short,
    "null": null,
    "skip_tags": skip_tags,
    "varint": read_varint,
}
"""What the generated functions call."""


class StructReader:
    """Adds `read_<struct>(data, pos, size) -> (struct, pos)` and those of its parts to a source."""

    def __init__(self, source: Source, version: int, *, flexible: bool) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []

    def add(self, cls: type[Any]) -> str:
        """Add the code that reads `cls` and return the function's name."""
        name = f"read_{cls.__name__}"
        source = self._source
        if name in source.names:
            return name
        fields = [field for field in fields_of(cls) if field.present(self._version)]
        for part in parts_of(fields):
            self.add(part)
        source.names[name] = None
        source.names[cls.__name__] = cls
        with source.block(f"def {name}(data, pos, size):"):
            for field in fields:
                if field.tag is None:
                    self._read(field.kind, f"v_{field.name}", self._nullable(field))
            if self._flexible:
                self._read_tags([field for field in fields if field.tag is not None])
            self._flush()
            given = ", ".join(f"{field.name}=v_{field.name}" for field in fields)
            source.line(f"return {cls.__name__}({given}), pos")
        return name

    def _nullable(self, field: Field) -> bool:
        return field.nullable(self._version)

    def _flush(self) -> None:
        """Unpack the pending fields: one call for all neighbours of fixed size."""
        if not self._run:
            return
        if len(self._run) == 1 and self._run[0][0] == "B":
            self._source.line(f"{self._run.pop()[1]} = data[pos]")
            self._source.line("pos += 1")
            return
        packing = Struct(">" + "".join(letter for letter, _ in self._run))
        unpack = self._source.constant(packing.unpack_from)
        targets = ", ".join(target for _, target in self._run)
        self._run.clear()
        self._source.line(f"{targets}, = {unpack}(data, pos)")
        self._source.line(f"pos += {packing.size}")

    def _read(self, kind: Kind, target: str, nullable: bool) -> None:  # noqa: FBT001
        match kind:
            case Fixed(letter):
                self._run.append((letter, target))
            case Nested(struct):
                self._read_nested(struct, target, nullable)
            case Text() | Blob() | Opaque() | Array():
                self._read_sized(kind, target, nullable)

    def _read_nested(self, struct: type[Any], target: str, nullable: bool) -> None:  # noqa: FBT001
        source = self._source
        call = f"{target}, pos = read_{struct.__name__}(data, pos, size)"
        if not nullable:
            self._flush()
            source.line(call)
            return
        there = source.fresh("there")
        self._run.append(("b", there))
        self._flush()
        with source.block(f"if {there} < 0:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            source.line(call)

    def _read_sized(self, kind: Text | Blob | Opaque | Array, target: str, nullable: bool) -> None:  # noqa: FBT001
        source = self._source
        count = source.fresh("n")
        self._read_count(count, "h" if isinstance(kind, Text) else "i")
        with source.block(f"if {count} < 0:"):
            source.line(f"{target} = None" if nullable else f"raise null({target[2:]!r})")
        with source.block("else:"):
            if isinstance(kind, Array):
                self._read_elements(kind.element, target, count)
            else:
                source.line(f"end = pos + {count}")
                source.line(f"if end > size: raise short({target[2:]!r})")
                source.line(f"{target} = {_TAKE[type(kind)]}")
                source.line("pos = end")

    def _read_count(self, count: str, old_letter: str) -> None:
        """Read a length; the compact form is one higher, so that 0 can mean null."""
        if not self._flexible:
            self._run.append((old_letter, count))
            self._flush()
            return
        self._run.append(("B", count))
        self._flush()
        self._source.line(f"if {count} > 127: {count}, pos = varint(data, pos - 1)")
        self._source.line(f"{count} -= 1")

    def _read_elements(self, element: Fixed | Text | Nested, target: str, count: str) -> None:
        source = self._source
        if isinstance(element, Fixed):
            packing = Struct(">" + element.letter)
            each = source.constant(packing.iter_unpack)
            source.line(f"end = pos + {count} * {packing.size}")
            source.line(f"if end > size: raise short({target[2:]!r})")
            source.line(f"{target} = tuple([x for x, in {each}(data[pos:end])])")
            source.line("pos = end")
            return
        # Every element takes at least a byte, so a count past the frame's end is false.
        source.line(f"if {count} > size - pos: raise short({target[2:]!r})")
        items, item = source.fresh("items"), source.fresh("v_item")
        source.line(f"{items} = []")
        with source.block(f"for _ in range({count}):"):
            self._read(element, item, nullable=False)
            source.line(f"{items}.append({item})")
        source.line(f"{target} = tuple({items})")

    def _read_tags(self, known: list[Field]) -> None:
        source = self._source
        self._run.append(("B", "tags"))
        self._flush()
        if not known:
            source.line("if tags: pos = skip_tags(data, pos - 1, size)")
            return
        for field in known:
            source.line(f"v_{field.name} = {source.constant(field.default)}")
        with source.block("if tags:"):
            source.line("tags, pos = varint(data, pos - 1)")
            with source.block("for _ in range(tags):"):
                source.line("tag, pos = varint(data, pos)")
                source.line("length, pos = varint(data, pos)")
                source.line("tag_end = pos + length")
                source.line('if tag_end > size: raise short("a tagged field")')
                for field in known:
                    with source.block(f"if tag == {field.tag}:"):
                        self._read(field.kind, f"v_{field.name}", self._nullable(field))
                        self._flush()
                        source.line(f"if pos != tag_end: raise short({field.name!r})")
                source.line("pos = tag_end")
