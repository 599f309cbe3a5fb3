"""How front ends reach the broker: by protocol messages, over any transport.

Over a socket to any Kafka broker, or straight into the dispatch of the broker in this process,
without serialisation. So whatever a front end can do, a script can do too.
"""

from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Channel(Protocol):
    """A channel to one broker."""

    async def call(self, request: Any, response: type[R]) -> R:
        """Send a request of `wire/messages` and return its response, of type `response`.

        Error codes inside the response are the caller's business. Raises a KafkaesqueError if there
        is no response.
        """
        ...
