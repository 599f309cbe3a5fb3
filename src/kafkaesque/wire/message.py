"""How a message is declared: `@struct` for parts, `@message(API)` for requests and answers.

A declared class is a frozen, slotted, keyword-only value (a `msgspec.Struct`, whose constructor is
several times as fast as a frozen dataclass's). Fields are on the wire in the order of their
declaration. A field that a version lacks is omitted when that version is written, and has its
default when that version is read, so every such field must have one.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, dataclass_transform

import msgspec

from kafkaesque.wire.kinds import (
    Array,
    Kind,
    Nested,
    NullableSince,
    Since,
    Tag,
    Until,
    kind_of,
    split_marks,
)

T = TypeVar("T")

LAST_VERSION = 32_767
"""The largest version that a request's header can carry."""


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """One of Kafka's APIs: what its request and response have in common."""

    key: int
    name: str
    first: int
    """The first version we serve."""
    last: int
    flexible_since: int
    """The first version with compact lengths and tagged fields; above `last` if there is none."""
    advertised_first: int | None = None
    """The first version we advertise, where that is not `first`."""

    def serves(self, version: int) -> bool:
        """Return whether messages of this version can be read and written."""
        return self.first <= version <= self.last

    def flexible(self, version: int) -> bool:
        """Return whether this version has compact lengths and tagged fields."""
        return version >= self.flexible_since


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a declared class."""

    name: str
    kind: Kind
    since: int
    until: int
    nullable_since: int | None
    """None if null is never allowed."""
    tag: int | None
    default: object
    """`msgspec.NODEFAULT` if there is none."""

    def present(self, version: int) -> bool:
        """Return whether this version has the field."""
        return self.since <= version <= self.until

    def nullable(self, version: int) -> bool:
        """Return whether this version allows null."""
        return self.nullable_since is not None and version >= self.nullable_since


@dataclass_transform(frozen_default=True, kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """Declare a struct used in messages."""
    return _declare(cls, {})


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(api: Api) -> Callable[[type[T]], type[T]]:
    """Declare a request or response of an API."""

    def declare(cls: type[T]) -> type[T]:
        return _declare(cls, {"__api__": api})

    return declare


def api_of(cls: type[Any]) -> Api:
    """Return the API that a message was declared with."""
    api: Api = cls.__api__
    return api


def fields_of(cls: type[Any]) -> tuple[Field, ...]:
    """Return the declared fields in wire order; tagged ones last, by their number."""
    infos = msgspec.structs.fields(cls)
    found = [_field(info.encode_name, cls.__annotations__[info.name], info) for info in infos]
    return tuple(sorted(found, key=lambda field: -1 if field.tag is None else field.tag))


def parts_of(fields: Iterable[Field]) -> list[type[Any]]:
    """Return the structs used by these fields."""
    kinds = [f.kind.element if isinstance(f.kind, Array) else f.kind for f in fields]
    return [kind.struct for kind in kinds if isinstance(kind, Nested)]


def _declare(cls: type[T], namespace: dict[str, object]) -> type[T]:
    own = {name: cls.__dict__[name] for name in cls.__annotations__ if name in cls.__dict__}
    columns: list[Any] = [
        (name, annotation, own[name]) if name in own else (name, annotation)
        for name, annotation in cls.__annotations__.items()
    ]
    namespace |= {"__doc__": cls.__doc__, "__qualname__": cls.__qualname__}
    declared: Any = msgspec.defstruct(
        cls.__name__,
        columns,
        module=cls.__module__,
        namespace=namespace,
        frozen=True,
        kw_only=True,
        gc=False,  # values that hold values cannot form a cycle
    )
    return declared  # type: ignore[no-any-return]


def _field(name: str, annotation: object, info: msgspec.structs.FieldInfo) -> Field:
    base, marks = split_marks(annotation)
    kind, nullable = kind_of(base)
    since, until, tag = 0, LAST_VERSION, None
    nullable_since = 0 if nullable else None
    for mark in marks:
        match mark:
            case Since(version):
                since = version
            case Until(version):
                until = version
            case NullableSince(version):
                nullable_since = version
            case Tag(number):
                tag = number
    optional = since > 0 or until < LAST_VERSION or tag is not None
    if optional and info.default is msgspec.NODEFAULT:
        raise TypeError(f"{name} is not in every version and needs a default")
    return Field(
        name=name,
        kind=kind,
        since=since,
        until=until,
        nullable_since=nullable_since,
        tag=tag,
        default=info.default,
    )
