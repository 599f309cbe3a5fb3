"""One broker's settings in force: its configuration plus run-time changes.

The catalog holds the changes (`machines/catalog/broker_settings.py`). Each change is passed to the
parts of the broker that use it; they apply it in `configure`, without a restart.
"""

from collections.abc import Callable, Mapping

from kafkaesque.callbacks import ignore
from kafkaesque.config import BrokerConfig
from kafkaesque.dynamic_settings import (
    limits_with_changes,
    static_defaults,
    topic_defaults,
    with_changes,
)
from kafkaesque.errors import InvalidSetting
from kafkaesque.events import Events, SettingsRefused
from kafkaesque.server_config import LimitsConfig


class LiveSettings:
    """The settings in force; `on_change` and `on_limits` are called when they change."""

    def __init__(self, config: BrokerConfig, events: Events) -> None:
        self.static = config
        """The configuration at start."""
        self.static_defaults = static_defaults(config)
        """The topic defaults unless changed at run time."""
        self.static_limits = LimitsConfig()
        """The limits at start; set by `keep_limits`."""
        self.config = config
        self.defaults = self.static_defaults
        """The topic defaults in force."""
        self.limits = self.static_limits
        self.on_change: Callable[[], None] = ignore
        self.on_limits: Callable[[LimitsConfig], None] = ignore
        self._events = events
        self._texts: Mapping[str, str] = {}

    def keep_limits(
        self, limits: LimitsConfig, on_limits: Callable[[LimitsConfig], None]
    ) -> LimitsConfig:
        """Take the limits at start, and the callback that enforces new ones."""
        self.static_limits, self.on_limits = limits, on_limits
        try:
            self.limits = limits_with_changes(limits, self._texts)
        except InvalidSetting as error:
            self._complain(error)
            self.limits = limits
        return self.limits

    def check(self, texts: Mapping[str, str]) -> None:
        """Raise InvalidSetting if these contradict each other or the configuration at start.

        The catalog checks each setting on its own.
        """
        with_changes(self.static, texts)
        limits_with_changes(self.static_limits, texts)

    def take(self, texts: Mapping[str, str]) -> None:
        """Apply these run-time changes; they replace all earlier ones."""
        if texts == self._texts:
            return
        self._texts = dict(texts)
        try:
            config = with_changes(self.static, texts)
            limits = limits_with_changes(self.static_limits, texts)
            defaults = topic_defaults(self.static_defaults, texts)
        except InvalidSetting as error:  # checked against another broker's configuration
            self._complain(error)
            return
        has_limits = limits != self.limits
        self.config, self.limits, self.defaults = config, limits, defaults
        self.on_change()
        if has_limits:
            self.on_limits(limits)

    def _complain(self, error: InvalidSetting) -> None:
        self._events.tell(SettingsRefused(reason=str(error)))
