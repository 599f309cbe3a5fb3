"""Random messages made from their declarations, and their equivalents in kio.

kio has a class per version and richer types than ours: error codes, durations and times. Values
are drawn so that both can represent them; comments say what kio cannot represent.
"""

import dataclasses
import datetime
import random
import types
import typing
import uuid
from typing import Any

from kio.index import load_payload_module
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i32Timedelta, i64Timedelta
from msgspec import NODEFAULT

from kafkaesque.wire.apis import APIS, PRIVATE_KEY_FIRST
from kafkaesque.wire.kinds import Array, Blob, Fixed, Kind, Nested, Opaque, Text
from kafkaesque.wire.message import Field, api_of, fields_of

_RANGES = {
    "b": (-(2**7), 2**7 - 1),
    "h": (-(2**15), 2**15 - 1),
    "i": (-(2**31), 2**31 - 1),
    "q": (-(2**63), 2**63 - 1),
    "H": (0, 2**16 - 1),
    "I": (0, 2**32 - 1),
}
_TEXTS = ("", "a", "orders", "größe-☃-𐍈", "x" * 127, "y" * 300)
_CODES = [int(code) for code in KioErrorCode]

KAFKAS = [row for row in APIS.values() if row.api.key < PRIVATE_KEY_FIRST]
"""The APIs that Kafka has too; kio knows no others."""

EVERY_MESSAGE = [
    (cls, version)
    for row in KAFKAS
    for cls in (row.request, row.response)
    for version in range(row.api.first, row.api.last + 1)
]
"""All of their classes with every version that their API serves."""


def title(case: object) -> str:
    """Return the test id of a case of EVERY_MESSAGE."""
    return case.__name__ if isinstance(case, type) else f"v{case}"


def random_message(cls: type[Any], version: int, chance: random.Random) -> Any:
    """Return an instance whose fields of this version are random and whose others are default."""
    twin = kio_class(cls, version)
    return _struct(cls, version, chance, twin)


def kio_class(cls: type[Any], version: int) -> type[Any]:
    """Return kio's class for one of our messages at one version."""
    request = cls.__name__.endswith("Request")
    kind = EntityType.request if request else EntityType.response
    module = load_payload_module(api_of(cls).key, version, kind)  # type: ignore[arg-type]
    found: type[Any] = getattr(module, cls.__name__)
    return found


def present(cls: type[Any], version: int) -> dict[str, Field]:
    """Return the fields that a version has, by name."""
    return {field.name: field for field in fields_of(cls) if field.present(version)}


def to_kio(value: Any, version: int, twin: type[Any]) -> Any:
    """Return the kio equivalent of a struct."""
    ours = present(type(value), version)
    theirs = _twins(twin)
    assert set(ours) == set(theirs), f"{twin} has other fields"
    return twin(
        **{
            theirs[name].name: _value_to_kio(getattr(value, name), version, theirs[name], twin)
            for name in ours
        }
    )


def different_defaults(cls: type[Any], version: int, twin: type[Any]) -> list[str]:
    """Return the fields, also of parts, whose default in kio differs from ours.

    Where kio declares none, ours is for the versions that lack the field, and is our own choice.
    """
    found = []
    theirs = _twins(twin)
    for name, field in present(cls, version).items():
        default = theirs[name].default
        if default is not dataclasses.MISSING:
            ours = field.default
            if ours is NODEFAULT or _value_to_kio(ours, version, theirs[name], twin) != default:
                found.append(f"{cls.__name__}.{name}")
        part = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(part, Nested):
            found += different_defaults(part.struct, version, _inner(theirs[name], twin))
    return found


def _twins(twin: type[Any]) -> dict[str, "dataclasses.Field[Any]"]:
    """Return kio's fields under our names: where kio has a duration, we have milliseconds."""
    found = {}
    for field in dataclasses.fields(twin):
        timed = _type_name(field) in ("timedelta_i32", "timedelta_i64", "datetime_i64")
        found[field.name + "_ms" if timed else field.name] = field
    return found


def _type_name(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata.get("kafka_type", "struct"))


def _inner(field: "dataclasses.Field[Any]", twin: type[Any]) -> type[Any]:
    """Return the class below `| None` and `tuple[..., ...]`."""
    found: Any = typing.get_type_hints(twin)[field.name]
    while args := typing.get_args(found):
        found = next(arg for arg in args if arg is not types.NoneType)
    assert isinstance(found, type)
    return found


def _value_to_kio(
    value: Any, version: int, field: "dataclasses.Field[Any]", twin: type[Any]
) -> Any:
    if isinstance(value, tuple):
        return tuple(_value_to_kio(item, version, field, twin) for item in value)
    match _type_name(field):
        case "struct" if value is not None:
            return to_kio(value, version, _inner(field, twin))
        case "error_code":
            return KioErrorCode(value)
        case "timedelta_i32":
            return i32Timedelta.parse(datetime.timedelta(milliseconds=value))
        case "timedelta_i64":
            return i64Timedelta.parse(datetime.timedelta(milliseconds=value))
        case "datetime_i64":
            utc = datetime.UTC
            return None if value == -1 else datetime.datetime.fromtimestamp(value / 1000, utc)
        case "uuid":
            return None if value == bytes(16) else uuid.UUID(bytes=value)
        case _:
            return value


def _struct(cls: type[Any], version: int, chance: random.Random, twin: type[Any]) -> Any:
    theirs = _twins(twin)
    return cls(
        **{
            name: _field(field, version, chance, theirs[name], twin)
            for name, field in present(cls, version).items()
        }
    )


def _field(
    field: Field,
    version: int,
    chance: random.Random,
    theirs: "dataclasses.Field[Any]",
    twin: type[Any],
) -> Any:
    if field.tag is not None and chance.random() < 0.4:
        return field.default
    if field.nullable(version) and chance.random() < 0.3:
        return None
    return _value(field.kind, version, chance, theirs, twin)


def _value(
    kind: Kind,
    version: int,
    chance: random.Random,
    theirs: "dataclasses.Field[Any]",
    twin: type[Any],
) -> Any:
    match kind:
        case Fixed(letter):
            found = _fixed(letter, chance, _type_name(theirs))
            # Where a time is required, kio has no value for "none".
            must_be_given = theirs.default is dataclasses.MISSING
            is_time = _type_name(theirs) == "datetime_i64"
            return 0 if is_time and must_be_given and found == -1 else found
        case Text():
            return chance.choice(_TEXTS)
        case Blob() | Opaque():
            return chance.randbytes(chance.choice((0, 1, 126, 127, 300)))
        case Nested(struct):
            return _struct(struct, version, chance, _inner(theirs, twin))
        case Array(element):
            count = chance.choice((0, 1, 1, 2, 3))
            return tuple(_value(element, version, chance, theirs, twin) for _ in range(count))


def _fixed(letter: str, chance: random.Random, type_name: str) -> Any:
    match type_name:
        case "error_code":  # kio knows only the codes that exist
            return chance.choice(_CODES)
        case "datetime_i64":  # kio has no times before 1970 and none finer than a second
            return chance.choice((-1, 0, 1_000, 1_700_000_000_000))
        case "timedelta_i64":  # kio's durations end after 2,700,000 years
            return chance.choice((-1, 0, 86_400_000))
    match letter:
        case "?":
            return chance.random() < 0.5
        case "d":
            return chance.choice((0.0, -1.5, 1e300))
        case "16s":
            return chance.choice((bytes(16), chance.randbytes(16)))
        case _:
            low, high = _RANGES[letter]
            return chance.choice((low, -1 if low < 0 else 1, 0, high, chance.randint(low, high)))
