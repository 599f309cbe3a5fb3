"""Counts what share groups do, for metrics: a range at a time, never record by record."""


class ShareTally:
    """Records, unless a name says otherwise; every number only grows."""

    __slots__ = (
        "accepted",
        "delivered",
        "expired",
        "given_up",
        "redelivered",
        "rejected",
        "writes_refused",
    )

    def __init__(self) -> None:
        self.delivered = 0
        """Deliveries, the first and all later ones of each record."""
        self.redelivered = 0
        """Deliveries of records that had been delivered before."""
        self.accepted = 0
        self.rejected = 0
        self.given_up = 0
        """Done without success, because they were delivered too often."""
        self.expired = 0
        """Released because their lock ran out."""
        self.writes_refused = 0
        """Writes that the state's coordinator refused."""
