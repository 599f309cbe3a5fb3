"""The current leader, reported with an error, so that a client needs no metadata request."""

from kafkaesque.broker.partition.fetch_sessions import TopicRef
from kafkaesque.server.answers.broker_addresses import Place, places
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId, Term
from kafkaesque.wire.error_codes import ErrorCode

NO_HINT: tuple[NodeId, Term] = (-1, -1)
_HINTED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class Hints:
    """The leaders that one response names, with their addresses."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._named: dict[NodeId, Place] = {}

    def leader(self, topic: TopicRef, index: int, code: int) -> tuple[NodeId, Term]:
        """Return a partition's leader and term, if that helps with this error."""
        if code not in _HINTED:
            return NO_HINT
        broker = self._session.broker
        catalog = broker.catalog
        found = catalog.topics.get(topic) if isinstance(topic, str) else catalog.topic_by_id(topic)
        if found is None or not 0 <= index < found.partitions:
            return NO_HINT
        term, node = broker.partition_leader(found, index)
        place = next((one for one in places(self._session) if one.node == node), None)
        if place is None:
            return NO_HINT
        self._named[place.node] = place
        return place.node, term

    @property
    def places(self) -> list[Place]:
        """The addresses of the named leaders."""
        return [self._named[node] for node in sorted(self._named)] if self._named else []
