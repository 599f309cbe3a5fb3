"""Producer ids: none is assigned twice, and there are few writes."""

from collections.abc import Callable

from kafkaesque.broker.coordination.producer_ids import ProducerIds
from kafkaesque.errors import KafkaesqueError, NotLeader, OutcomeUnknown

BLOCK = 3


class Catalog:
    """Hands out blocks, and lets the test say when they are committed."""

    def __init__(self) -> None:
        self.next_id = 0
        self.pending: list[Callable[[bool], None]] = []
        self.leads = True

    def take(self, count: int, taken: Callable[[int | KafkaesqueError], None]) -> None:
        if not self.leads:
            taken(NotLeader(None))
            return
        first = self.next_id
        self.next_id += count
        self.pending.append(lambda is_known: taken(first if is_known else OutcomeUnknown("lost")))

    def settle(self, *, is_known: bool = True) -> None:
        while self.pending:
            self.pending.pop(0)(is_known)


def test_ids_come_from_blocks_once_those_are_committed() -> None:
    catalog = Catalog()
    ids = ProducerIds(BLOCK, catalog.take)
    given: list[int | KafkaesqueError] = []
    ids.next(given.append)
    ids.next(given.append)
    assert given == []
    catalog.settle()
    assert given == [0, 1]
    ids.next(given.append)
    assert given == [0, 1, 2]
    assert catalog.next_id == BLOCK


def test_enough_blocks_are_allocated_for_all_waiting_requests() -> None:
    catalog = Catalog()
    ids = ProducerIds(BLOCK, catalog.take)
    given: list[int | KafkaesqueError] = []
    for _ in range(BLOCK * 2 + 1):
        ids.next(given.append)
    catalog.settle()
    assert given == list(range(BLOCK * 2 + 1))


def test_a_block_with_an_unknown_outcome_is_never_used() -> None:
    catalog = Catalog()
    ids = ProducerIds(BLOCK, catalog.take)
    given: list[int | KafkaesqueError] = []
    ids.next(given.append)
    catalog.settle(is_known=False)
    assert isinstance(given.pop(), OutcomeUnknown)
    ids.next(given.append)
    catalog.settle()
    assert given == [BLOCK]


def test_a_block_can_be_used_up_after_leadership_is_lost_but_no_new_one_is_allocated() -> None:
    catalog = Catalog()
    ids = ProducerIds(BLOCK, catalog.take)
    given: list[int | KafkaesqueError] = []
    ids.next(given.append)
    catalog.settle()
    catalog.leads = False
    ids.next(given.append)
    ids.next(given.append)
    assert given == [0, 1, 2]
    ids.next(given.append)
    assert isinstance(given[-1], NotLeader)
