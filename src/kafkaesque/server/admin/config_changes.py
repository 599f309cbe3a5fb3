"""Shared by both APIs that change settings: each resource on its own, none twice."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.admin.resources import check_not_in, repeated_in
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.wire.error_codes import ErrorCode


class Resource(Protocol):
    """A resource with settings, as a request names it."""

    @property
    def resource_type(self) -> int:
        """The kind of resource, by Kafka's number."""
        ...

    @property
    def resource_name(self) -> str:
        """Its name."""
        ...


R = TypeVar("R", bound=Resource)


async def altered(
    resources: Sequence[R], alter: Callable[[R], Awaitable[None]]
) -> list[tuple[R, ErrorCode, str | None]]:
    """Change each resource; return each with its error code and message."""
    repeated = repeated_in((one.resource_type, one.resource_name) for one in resources)
    out: list[tuple[R, ErrorCode, str | None]] = []
    for resource in resources:
        try:
            check_not_in(repeated, (resource.resource_type, resource.resource_name), "resource")
            await alter(resource)
        except KafkaesqueError as error:
            out.append((resource, code_of(error), message_of(error)))
        else:
            out.append((resource, ErrorCode.NONE, None))
    return out
