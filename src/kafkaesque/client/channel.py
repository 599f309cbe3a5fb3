"""How front ends reach the broker: by the protocol's messages, whatever carries them.

Over a socket to any Kafka broker, or straight into the dispatch of the broker in this process, with
no bytes in between. What a front end can do, a script can therefore do too.
"""

from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Channel(Protocol):
    """One way to one broker."""

    async def call(self, request: Any, response: type[R]) -> R:
        """Send a request of `wire/messages` and return its answer, which is of type `response`.

        Error codes inside the answer are the caller's business. Raises a KafkaesqueError when there
        is no answer.
        """
        ...
