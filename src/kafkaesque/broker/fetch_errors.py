"""What fetch sessions refuse."""

from kafkaesque.errors import BrokerError


class FetchSessionError(BrokerError):
    """A fetch session that cannot go on; the client begins anew with a full request."""


class FetchSessionUnknown(FetchSessionError):
    """No session has this id, or no longer."""


class FetchEpochWrong(FetchSessionError):
    """The request is not the one that follows in its session."""


class FetchTopicsMixed(FetchSessionError):
    """A session that began with topics' names goes on with ids, or the other way round."""
