"""What a declaration says about its fields."""

from typing import Annotated, Any

import pytest

from kafkaesque.wire.kinds import Array, Fixed, Int32, NullableSince, Since, Tag, Text, Until
from kafkaesque.wire.message import Api, api_of, fields_of, message, struct

EXAMPLE = Api(key=999, name="Example", first=1, last=5, flexible_since=3)


@message(EXAMPLE)
class Example:
    """All marks."""

    late: Annotated[str | None, Tag(0), Since(3)] = None
    count: Int32
    names: Annotated[tuple[str, ...] | None, NullableSince(2)]
    old: Annotated[bool, Until(2)] = False


def test_fields_are_in_wire_order_with_tagged_ones_last() -> None:
    assert [field.name for field in fields_of(Example)] == ["count", "names", "old", "late"]
    kinds = [field.kind for field in fields_of(Example)]
    assert kinds == [Fixed("i"), Array(Text()), Fixed("?"), Text()]


def test_a_field_knows_the_versions_that_have_it_and_that_allow_null() -> None:
    count, names, old, late = fields_of(Example)
    assert [version for version in range(1, 6) if late.present(version)] == [3, 4, 5]
    assert [version for version in range(1, 6) if old.present(version)] == [1, 2]
    assert [version for version in range(1, 6) if names.nullable(version)] == [2, 3, 4, 5]
    assert not any(count.nullable(version) for version in range(1, 6))


def test_a_declared_class_is_a_frozen_value() -> None:
    one = Example(count=1, names=("a",))
    assert one == Example(count=1, names=("a",))
    with pytest.raises(AttributeError):
        one.count = 2  # type: ignore[misc]
    assert api_of(Example) is EXAMPLE
    assert Example.__doc__ == "All marks."


def test_a_field_that_some_versions_lack_needs_a_default() -> None:
    @struct
    class Wrong:
        late: Annotated[Int32, Since(3)]

    with pytest.raises(TypeError, match="late is not in every version"):
        fields_of(Wrong)


@pytest.mark.parametrize("annotation", [int, list[str], tuple[bytes, ...], str | bytes])
def test_an_annotation_that_is_not_a_field_type_is_refused(annotation: Any) -> None:
    class Wrong:
        pass

    Wrong.__annotations__ = {"field": annotation}
    with pytest.raises(TypeError, match="is not a kind of field"):
        fields_of(struct(Wrong))
