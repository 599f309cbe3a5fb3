"""Splits a client's bytes into requests; the size limit depends on the API."""

from struct import Struct

from kafkaesque.errors import MalformedFrame
from kafkaesque.net.frame_reader import Receiver
from kafkaesque.server_config import LimitsConfig

PRODUCE_KEY = 0
"""The one API whose requests may be large: its bytes are batches, which are not decoded."""

_LENGTH_AND_KEY = Struct(">ih")


class RequestReceiver(Receiver):
    """The bytes of one connection's incomplete request."""

    __slots__ = ("_request_bytes_max",)

    begin_bytes = _LENGTH_AND_KEY.size

    def __init__(self, slab: memoryview, limits: LimitsConfig) -> None:
        super().__init__(slab, limits.frame_bytes_max)
        self._request_bytes_max = limits.request_bytes_max
        self.usual_bytes_max = min(self.usual_bytes_max, limits.request_bytes_max)

    def _check(self, size: int, position: int, end: int) -> None:
        super()._check(size, position, end)
        bytes_max = self._request_bytes_max
        if size > bytes_max and end - position >= _LENGTH_AND_KEY.size:
            _, key = _LENGTH_AND_KEY.unpack_from(self._slab, position)
            if key != PRODUCE_KEY:
                raise MalformedFrame(
                    f"a request of {size} bytes for API {key}, at most {bytes_max} are accepted"
                )
