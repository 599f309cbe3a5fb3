"""Reads a consumer's partitions into one response of bounded size."""

from collections.abc import Iterable, Sequence

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.topics import Slot
from kafkaesque.broker.partition.fetch_sessions import TopicRef, Want
from kafkaesque.broker.partition.partition import EMPTY, Partition
from kafkaesque.broker.partition.partition_transactions import Aborted
from kafkaesque.broker.rack_reads import Nearby
from kafkaesque.errors import BrokerError, KafkaesqueError, UnknownTopic
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.machines.catalog.catalog_errors import UnknownTopicId
from kafkaesque.record.view import BatchView, peek_size
from kafkaesque.types import NodeId, Offset, Term


class InconsistentTopicId(BrokerError):
    """The local partitions belong to another topic id: the topic is just being recreated."""


class Share:
    """One partition's share of a response: its batches, or the reason why there are none."""

    __slots__ = (
        "aborted",
        "data",
        "diverging",
        "error",
        "first_offset",
        "high_watermark",
        "nearby",
        "partition",
        "preferred",
        "stable_offset",
        "want",
    )

    def __init__(
        self, want: Want, found: Partition | KafkaesqueError, nearby: Nearby | None = None
    ) -> None:
        self.want = want
        self.nearby = nearby
        self.preferred: NodeId | None = None
        """The replica to ask instead: one nearer to the consumer."""
        self.partition: Partition | None = None
        self.error: KafkaesqueError | None = None
        self.diverging: tuple[Term, Offset] | None = None
        """Where the fetcher's log diverges from this one: the last term that both have."""
        self.data = EMPTY
        self.high_watermark: Offset = -1
        self.stable_offset: Offset = -1
        """The last stable offset for read-committed consumers, the high watermark for others."""
        self.first_offset: Offset = -1
        self.aborted: Sequence[Aborted] = ()
        """The aborted transactions with records in `data`, for read-committed consumers."""
        if isinstance(found, Partition):
            self.partition = found
        else:
            self.error = found

    @property
    def is_odd(self) -> bool:
        """Whether the response must go out at once although it has no data."""
        return self.error is not None or self.diverging is not None or self.preferred is not None

    def read(self, bytes_max: int, *, first_always: bool, only_stable: bool = False) -> int:
        """Read again, up to `bytes_max`; return the bytes read."""
        partition, want = self.partition, self.want
        if partition is None:
            return 0
        self.data = EMPTY
        self.error = self.preferred = None
        nearby = self.nearby
        try:
            if nearby is not None and nearby.is_here and not partition.replica.is_serving:
                self._read_as_follower(partition, bytes_max, first_always=first_always)
            else:
                self._read(partition, bytes_max, first_always=first_always, only_stable=only_stable)
            self.high_watermark = partition.high_watermark
            if not only_stable:
                self.stable_offset = self.high_watermark
            self.first_offset = partition.first_offset
        except KafkaesqueError as error:
            # Without its traceback, which would hold on to this share, and so to itself.
            self.error = _by_its_name(error, want.topic).with_traceback(None)
            self.high_watermark = self.stable_offset = self.first_offset = -1
        return len(self.data)

    def _read(
        self, partition: Partition, bytes_max: int, *, first_always: bool, only_stable: bool
    ) -> None:
        want = self.want
        if want.known_term >= 0:
            partition.check_term(want.known_term)
        if self.nearby is not None:
            self.preferred = self.nearby.better(partition, want.offset)
        self.diverging = None if want.last_term < 0 else self._divergence(partition)
        if only_stable:
            self._read_stable(partition, bytes_max, first_always=first_always)
        elif self.diverging is None and self.preferred is None:
            self.data = partition.read(want.offset, bytes_max, first_always=first_always)

    def _read_as_follower(
        self, partition: Partition, bytes_max: int, *, first_always: bool
    ) -> None:
        """Skip the divergence check, the leader's task: a follower shows only committed records."""
        want = self.want
        partition.check_term_as_follower(want.known_term)
        self.data = partition.read_as_follower(want.offset, bytes_max, first_always=first_always)

    def _read_stable(self, partition: Partition, bytes_max: int, *, first_always: bool) -> None:
        """Read up to the last stable offset, and find the aborted transactions in it."""
        self.stable_offset = stable = partition.stable_offset
        self.aborted = ()
        if self.diverging is None and self.preferred is None:
            offset = self.want.offset
            self.data = data = partition.read(
                offset, bytes_max, first_always=first_always, below=stable
            )
            if data and partition.has_aborted:
                self.aborted = partition.aborted(offset, _end_of(data))

    def drop(self) -> None:
        """Release the data: it will be read again, and waiting may take long."""
        self.data = EMPTY

    def _divergence(self, partition: Partition) -> tuple[Term, Offset] | None:
        want = self.want
        known = partition.end_of_term(want.last_term)
        if known is None:
            raise OffsetOutOfRange(want.offset, partition.first_offset, partition.high_watermark)
        term, end = known
        return known if term < want.last_term or end < want.offset else None


def find_shares(broker: Broker, wants: Iterable[Want], nearby: Nearby | None = None) -> list[Share]:
    """Return one share per want, in order; nothing is read yet."""
    topics: dict[TopicRef, Sequence[Slot] | KafkaesqueError] = {}
    shares = []
    for want in wants:
        slots = topics.get(want.topic)
        if slots is None:
            slots = topics[want.topic] = slots_of(broker, want.topic)
        if isinstance(slots, KafkaesqueError):
            shares.append(Share(want, slots))
        elif 0 <= want.partition < len(slots):
            shares.append(Share(want, slots[want.partition], nearby))
        else:
            shares.append(Share(want, UnknownTopic(f"there is no partition {want.partition}")))
    return shares


def read_shares(shares: Sequence[Share], bytes_max: int, *, only_stable: bool = False) -> int:
    """Read the shares in order until the response is full; return the total bytes.

    The first batch of a response is returned whatever its size, or its consumer could never
    progress. An error in one share does not affect the others.
    """
    total = 0
    for share in shares:
        room = min(share.want.bytes_max, bytes_max - total)
        total += share.read(max(room, 0), first_always=total == 0, only_stable=only_stable)
    return total


def bytes_waiting(shares: Sequence[Share]) -> int:
    """Return roughly how much there is to read, without reading; never too low."""
    return sum(
        min(share.want.bytes_max, share.partition.bytes_from(share.want.offset))
        for share in shares
        if share.partition is not None
    )


def _end_of(data: memoryview) -> Offset:
    """Return the offset behind the last of these batches."""
    position = last = 0
    while position < len(data):
        last = position
        position += peek_size(data, position)[1]
    return BatchView(data, last).end_offset


def slots_of(broker: Broker, topic: TopicRef) -> Sequence[Slot] | KafkaesqueError:
    """Return a topic's partitions here, or why there are none."""
    try:
        if isinstance(topic, str):
            return broker.topics.slots(topic)
        found = broker.catalog.topic_of_id(topic)
        # A topic that was deleted and created again keeps its name, but not its id.
        if broker.topics.topic(found.name).topic_id != topic:
            return InconsistentTopicId(f"{found.name} is just being recreated")
        return broker.topics.slots(found.name)
    except UnknownTopic as error:
        return _by_its_name(error, topic)
    except BrokerError as error:
        return error


def _by_its_name(error: KafkaesqueError, topic: TopicRef) -> KafkaesqueError:
    """Return the error for a client that uses topic ids: a deleted id never comes back."""
    is_by_id = isinstance(topic, bytes)
    if is_by_id and isinstance(error, UnknownTopic):
        return UnknownTopicId("there is no topic with this id any more")
    return error
