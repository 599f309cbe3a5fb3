"""State shared by all connections of the text protocol."""

from collections.abc import Sequence

from kafkaesque.client.channel import Channel
from kafkaesque.clock import Clock
from kafkaesque.gateway.text_subscriptions import Subscriptions
from kafkaesque.server_config import TextLimits

TURNS_MAX = 10_000
"""Topics with a remembered turn; beyond it all turns restart."""


class TextDesk:
    """The channel to the broker, the limits, the subscriptions and the partition turns."""

    def __init__(self, channel: Channel, clock: Clock, limits: TextLimits | None = None) -> None:
        self.channel = channel
        self.clock = clock
        self.limits = limits or TextLimits()
        self.subscriptions = Subscriptions(self.limits)
        self._turns: dict[str, int] = {}

    def next_partition(self, topic: str, available: Sequence[int]) -> int:
        """Return the partition for a record without a key: the available ones in turn."""
        if len(self._turns) >= TURNS_MAX and topic not in self._turns:
            self._turns.clear()
        turn = self._turns.get(topic, 0) % len(available)
        self._turns[topic] = turn + 1
        return available[turn]
