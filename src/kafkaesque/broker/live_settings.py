"""What is set on one broker now: its configuration, and what was changed at run time.

The catalog says what was changed (`machines/broker_settings.py`). Each change is carried to those
parts of the broker that act on it; they take it in with `configure`, and nothing starts again.
"""

import logging
from collections.abc import Callable, Mapping

from kafkaesque.config import BrokerConfig, LimitsConfig
from kafkaesque.dynamic_settings import (
    limits_with_changes,
    static_defaults,
    topic_defaults,
    with_changes,
)
from kafkaesque.errors import InvalidSetting

log = logging.getLogger(__name__)


class LiveSettings:
    """The settings in force; `on_change` and `on_limits` are called when they have changed."""

    def __init__(self, config: BrokerConfig) -> None:
        self.static = config
        """What the broker was started with."""
        self.static_defaults = static_defaults(config)
        """What holds for topics where nothing was set at run time."""
        self.static_limits = LimitsConfig()
        """What the broker was started with; set by those who keep the limits."""
        self.config = config
        self.defaults = self.static_defaults
        """What holds for topics of which nothing else is said."""
        self.limits = self.static_limits
        self.on_change: Callable[[], None] = _ignore
        self.on_limits: Callable[[LimitsConfig], None] = _ignore
        self._texts: Mapping[str, str] = {}

    def keep_limits(
        self, limits: LimitsConfig, on_limits: Callable[[LimitsConfig], None]
    ) -> LimitsConfig:
        """Learn the limits that the broker was started with, and who keeps them."""
        self.static_limits, self.on_limits = limits, on_limits
        try:
            self.limits = limits_with_changes(limits, self._texts)
        except InvalidSetting as error:
            _complain(error)
            self.limits = limits
        return self.limits

    def check(self, texts: Mapping[str, str]) -> None:
        """Raise InvalidSetting if these contradict each other or what the broker was started with.

        What each may be by itself the catalog checks.
        """
        with_changes(self.static, texts)
        limits_with_changes(self.static_limits, texts)

    def take(self, texts: Mapping[str, str]) -> None:
        """Let these hold from now on, and nothing else that was changed at run time before."""
        if texts == self._texts:
            return
        self._texts = dict(texts)
        try:
            config = with_changes(self.static, texts)
            limits = limits_with_changes(self.static_limits, texts)
            defaults = topic_defaults(self.static_defaults, texts)
        except InvalidSetting as error:  # they were checked against another broker's configuration
            _complain(error)
            return
        has_limits = limits != self.limits
        self.config, self.limits, self.defaults = config, limits, defaults
        self.on_change()
        if has_limits:
            self.on_limits(limits)


def _complain(error: InvalidSetting) -> None:
    log.error("settings_refused reason=%s: what was set at run time before holds", error)


def _ignore(*_: object) -> None:
    """Nobody wants to know."""
