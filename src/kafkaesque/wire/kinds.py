"""The kinds of fields on the wire, and the marks for the versions that have them.

A field's annotation is its whole declaration: `Int32`, `str`, `tuple[Int32, ...]`, another struct;
`| None` where null is allowed; `Annotated[..., Since(5)]` where it came later. Kafka writes lengths
in two forms, an old one of fixed size and a compact one; only the version of the message decides
which, so no field states it.
"""

import types
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from msgspec import Struct

from kafkaesque.types import Buffer


class Fixed(Struct, frozen=True):
    """A value of a fixed number of bytes, named by its letter in Python's `struct`."""

    letter: str


class Text(Struct, frozen=True):
    """UTF-8 preceded by its length."""


class Blob(Struct, frozen=True):
    """Bytes preceded by their length; a decoder copies them, so that they may be kept."""


class Opaque(Struct, frozen=True):
    """Bytes preceded by their length; a decoder returns a view of the frame."""


class Nested(Struct, frozen=True):
    """Another struct."""

    struct: type[Any]


class Array(Struct, frozen=True):
    """Any number of elements of one kind, preceded by their count."""

    element: "Fixed | Text | Nested"


Kind: TypeAlias = Fixed | Text | Blob | Opaque | Nested | Array

Int8: TypeAlias = Annotated[int, Fixed("b")]
Int16: TypeAlias = Annotated[int, Fixed("h")]
Int32: TypeAlias = Annotated[int, Fixed("i")]
Int64: TypeAlias = Annotated[int, Fixed("q")]
UInt16: TypeAlias = Annotated[int, Fixed("H")]
Uuid: TypeAlias = Annotated[bytes, Fixed("16s")]
"""Sixteen bytes; not a `uuid.UUID`, which takes longer to create than the rest of a request."""
Records: TypeAlias = Annotated[Buffer, Opaque()]
"""Record batches, never decoded here; most messages allow null."""

NO_UUID = bytes(16)
"""Kafka's "no id"."""


class Since(Struct, frozen=True):
    """The field exists since this version; before, it has its default."""

    version: int


class Until(Struct, frozen=True):
    """The field exists up to this version; later, it has its default."""

    version: int


class NullableSince(Struct, frozen=True):
    """Null is allowed since this version; a `| None` without this mark always allows it."""

    version: int


class Tag(Struct, frozen=True):
    """The field is written among the tagged fields, and only if it differs from its default."""

    number: int


Mark: TypeAlias = Since | Until | NullableSince | Tag

_PLAIN: dict[object, Kind] = {str: Text(), bytes: Blob(), bool: Fixed("?"), float: Fixed("d")}


def kind_of(annotation: object) -> tuple[Kind, bool]:
    """Return the kind that an annotation without marks stands for, and whether it allows null.

    Raises TypeError for an unknown annotation.
    """
    if get_origin(annotation) in (Union, types.UnionType):
        inner = [part for part in get_args(annotation) if part is not types.NoneType]
        if len(inner) == 1:
            return kind_of(inner[0])[0], True
    if get_origin(annotation) is Annotated:
        for mark in get_args(annotation)[1:]:
            if isinstance(mark, Fixed | Opaque):
                return mark, False
    if get_origin(annotation) is tuple:
        element, nullable = kind_of(get_args(annotation)[0])
        if isinstance(element, Fixed | Text | Nested) and not nullable:
            return Array(element), False
    if annotation in _PLAIN:
        return _PLAIN[annotation], False
    if isinstance(annotation, type) and hasattr(annotation, "__struct_fields__"):
        return Nested(annotation), False
    raise TypeError(f"{annotation!r} is not a kind of field")


def split_marks(annotation: object) -> tuple[object, list[Mark]]:
    """Separate the marks from an annotation and return both."""
    if get_origin(annotation) is not Annotated:
        return annotation, []
    base, *notes = get_args(annotation)
    marks = [note for note in notes if isinstance(note, Mark)]
    kinds = [note for note in notes if not isinstance(note, Mark)]
    return (Annotated[base, kinds[0]] if kinds else base), marks
