"""What waits for a peer: in order, within a limit, and what goes first when there is no room."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.cluster_config import LinkConfig
from kafkaesque.net.outbox import Outbox, Sort

BULK = bytes(10_000)
EVERYTHING = 1 << 30


def an_outbox(bytes_max: int = 100_000, messages_max: int = 1_000) -> Outbox:
    return Outbox(LinkConfig(queue_bytes_max=bytes_max, queue_messages_max=messages_max))


def contents(outbox: Outbox) -> list[bytes]:
    return [bytes(part) for part in outbox.take(EVERYTHING)[0]]


def test_messages_leave_in_the_order_in_which_they_came() -> None:
    outbox = an_outbox()
    sorts = [Sort.SMALL, Sort.HEARTBEAT, Sort.BULK, Sort.BEAT, Sort.SMALL]
    for number, sort in enumerate(sorts):
        assert outbox.put([b"%d" % number], sort)
    assert contents(outbox) == [b"0", b"1", b"2", b"3", b"4"]
    assert (len(outbox), outbox.size) == (0, 0)


def test_some_can_be_taken_and_the_rest_stays() -> None:
    outbox = an_outbox()
    for number in range(9):
        outbox.put([b"%d" % number, BULK], Sort.BULK)
    parts, count = outbox.take(15_000)
    assert count == 2
    assert parts == [b"0", BULK, b"1", BULK]
    assert len(outbox) == 7


def test_a_beat_replaces_the_one_before_it_at_the_end_of_the_queue() -> None:
    outbox = an_outbox()
    outbox.put([b"old"], Sort.BEAT)
    outbox.put([b"vote"], Sort.SMALL)
    outbox.put([b"new"], Sort.BEAT)
    assert contents(outbox) == [b"vote", b"new"]
    outbox.put([b"next"], Sort.BEAT)
    assert contents(outbox) == [b"next"]


def test_heartbeats_go_first_and_the_oldest_before_the_others() -> None:
    outbox = an_outbox(bytes_max=20_500)
    for number in range(3):
        outbox.put([b"heartbeat %d" % number], Sort.HEARTBEAT)
    assert outbox.put([BULK], Sort.BULK)
    assert outbox.put([bytes(9_850)], Sort.BULK)
    assert contents(outbox) == [b"heartbeat 2", BULK, bytes(9_850)]
    assert outbox.dropped == 2


def test_the_newest_append_is_refused_so_that_those_before_it_fit_together() -> None:
    outbox = an_outbox()
    taken = [outbox.put([b"%02d" % number, BULK], Sort.BULK) for number in range(12)]
    assert taken == [True] * 9 + [False] * 3
    assert outbox.put([b"vote"], Sort.SMALL)
    assert outbox.dropped == 3


def test_even_small_messages_end_somewhere() -> None:
    outbox = an_outbox(messages_max=100)
    taken = sum(outbox.put([b"vote"], Sort.SMALL) for _ in range(1_000))
    assert taken == 125


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(Sort), st.integers(1, 4_000)) | st.integers(1, 9_000),
        max_size=200,
    )
)
def test_whatever_comes_the_limit_holds_and_the_order_stays(
    steps: list[tuple[Sort, int] | int],
) -> None:
    outbox = an_outbox(bytes_max=20_000, messages_max=20)
    seen: list[int] = []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            seen += [int.from_bytes(part[:2], "big") for part in outbox.take(step)[0]]
        else:
            sort, size = step
            outbox.put([number.to_bytes(2, "big") + bytes(size)], sort)
        assert 0 <= outbox.size <= 25_000
        assert len(outbox) <= 25
    seen += [int.from_bytes(part[:2], "big") for part in outbox.take(EVERYTHING)[0]]
    assert seen == sorted(seen)
    assert outbox.size == 0
    puts = sum(not isinstance(step, int) for step in steps)
    assert len(seen) + outbox.dropped == puts
