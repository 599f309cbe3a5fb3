"""FindCoordinator: which broker coordinates a group or a transaction."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Since, Until
from kafkaesque.wire.message import Api, message, struct

API = Api(key=10, name="FindCoordinator", first=0, last=6, flexible_since=3)


@message(API)
class FindCoordinatorRequest:
    """A client asks which broker coordinates groups or transactions."""

    key: Annotated[str, Until(3)] = ""
    key_type: Annotated[Int8, Since(1)] = 0
    coordinator_keys: Annotated[tuple[str, ...], Since(4)] = ()


@struct
class Coordinator:
    """One of `coordinators` of FindCoordinatorResponse."""

    key: str
    node_id: Int32
    host: str
    port: Int32
    error_code: Int16
    error_message: str | None


@message(API)
class FindCoordinatorResponse:
    """The broker names the coordinators."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    coordinators: Annotated[tuple[Coordinator, ...], Since(4)] = ()
    error_code: Annotated[Int16, Until(3)] = 0
    error_message: Annotated[str | None, Since(1), Until(3)] = None
    node_id: Annotated[Int32, Until(3)] = 0
    host: Annotated[str, Until(3)] = ""
    port: Annotated[Int32, Until(3)] = 0
