"""Why a broker does not start with the data folder it has."""

from kafkaesque.errors import LogError


class OldCopy(LogError):
    """The data folder is older than what another broker remembers of it."""

    def __init__(self, peer: int, *, kept_catalog: bool = False) -> None:
        remedy = (
            "by this copy no other broker votes on the catalog, but others may by now: "
            "let this broker join again with an empty folder"
            if kept_catalog
            else "start this broker again to fetch the missing data from the others"
        )
        super().__init__(
            f"the data folder is an old copy: broker {peer} remembers newer data; {remedy}"
        )
        self.peer = peer


class JournalLost(LogError):
    """The journal is unusable or missing, and with it all terms and votes."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; without it the terms in which this broker voted are unknown: if other "
            "brokers hold the same data, start it once with --rejoin to copy everything from them; "
            "if it is alone, `kafkaesque log repair --data DIR` rebuilds the journal from segments"
        )
