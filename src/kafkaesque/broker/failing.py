"""How a broker tells that it cannot go on."""

from collections.abc import Callable

from kafkaesque.errors import LogError


def once(failed: Callable[[LogError], None]) -> Callable[[LogError], None]:
    """Tell of the first failure only: who cannot read a log can do so in two ways."""
    told: list[LogError] = []

    def tell(error: LogError) -> None:
        if not told:
            told.append(error)
            failed(error)

    return tell
