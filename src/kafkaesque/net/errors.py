"""How links to other brokers fail, in addition to unreachable peers."""

from kafkaesque.errors import LinkError


class MalformedLink(LinkError):
    """A peer sent an invalid link frame; the link is cut."""


class LinkRefused(LinkError):
    """Two brokers do not belong together: another cluster, node, secret or protocol."""

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.answer = answer
        """The refusal to send to the other side; None if the other side refused."""


class SecretMissing(LinkRefused):
    """Links to other machines require a secret."""


class AnswerLost(LinkError):
    """The link closed or the call timed out before the answer: it may have been done."""


class CallRefused(LinkError):
    """The other broker refused the request."""
