"""The queue of a peer: its order, its limit, and what is dropped when it is full."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.net.codec import Call, Decoder
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.frame_reader import SLAB_BYTES, Receiver
from kafkaesque.net.link_frame import frame
from kafkaesque.net.outbox import Outbox, Sort
from kafkaesque.net.pieces import Gathering
from kafkaesque.types import Buffer

BULK = bytes(10_000)
EVERYTHING = 1 << 30
WHOLE = 50_000
PIECE = 1_000


def an_outbox(
    bytes_max: int = 100_000, messages_max: int = 1_000, whole_bytes_max: int = WHOLE
) -> Outbox:
    outbox = Outbox(
        LinkConfig(
            queue_bytes_max=bytes_max,
            queue_messages_max=messages_max,
            whole_bytes_max=whole_bytes_max,
            piece_bytes=min(PIECE, whole_bytes_max),
        )
    )
    outbox.cuts = True
    return outbox


def contents(outbox: Outbox) -> list[bytes]:
    return [bytes(part) for part in outbox.take(EVERYTHING)[0]]


class Reader:
    """The calls that the peer would read, as numbers."""

    def __init__(self) -> None:
        self._receiver = Receiver(memoryview(bytearray(SLAB_BYTES)), 1 << 20)
        self._decoder = Decoder(1, 2, Gathering(1 << 20, 0))

    def read(self, parts: list[Buffer]) -> list[int]:
        data = b"".join(parts)
        found = []
        while data:
            buffer = self._receiver.buffer()
            count = min(len(data), len(buffer))
            buffer[:count] = data[:count]
            data = data[count:]
            for one in self._receiver.received(count):
                call = self._decoder.decode(one)
                if call is not None:
                    assert isinstance(call, Call)
                    assert bytes(call.data) == bytes([call.number % 256]) * len(call.data)
                    found.append(call.number)
        return found

    def drain(self, outbox: Outbox, bytes_max: int) -> list[int]:
        """Take everything that is queued, in turns of so many bytes."""
        found = []
        while outbox:
            found += self.read(outbox.take(bytes_max)[0])
        return found


def a_call(number: int, size: int) -> list[Buffer]:
    return frame((30, number, 0), [bytes([number % 256]) * size])


def test_small_messages_leave_in_order_and_before_bulk() -> None:
    outbox = an_outbox()
    sorts = [Sort.SMALL, Sort.HEARTBEAT, Sort.BULK, Sort.BEAT, Sort.SMALL, Sort.BULK]
    for number, sort in enumerate(sorts):
        assert outbox.put([b"%d" % number], sort)
    assert contents(outbox) == [b"0", b"1", b"3", b"4", b"2", b"5"]
    assert (len(outbox), outbox.size) == (0, 0)


def test_a_part_can_be_taken_and_the_rest_stays() -> None:
    outbox = an_outbox()
    for number in range(9):
        outbox.put([b"%d" % number, BULK], Sort.BULK)
    parts, count = outbox.take(15_000)
    assert count == 2
    assert parts == [b"0", BULK, b"1", BULK]
    assert len(outbox) == 7


def test_a_beat_replaces_the_previous_one_at_the_end_of_the_queue() -> None:
    outbox = an_outbox()
    outbox.put([b"old"], Sort.BEAT)
    outbox.put([b"vote"], Sort.SMALL)
    outbox.put([b"new"], Sort.BEAT)
    assert contents(outbox) == [b"vote", b"new"]
    outbox.put([b"next"], Sort.BEAT)
    assert contents(outbox) == [b"next"]


def test_a_large_beat_is_not_queued_behind_another_one() -> None:
    outbox = an_outbox(bytes_max=1 << 20)
    assert outbox.put(a_call(1, 2 * WHOLE), Sort.BEAT)
    assert not outbox.put(a_call(2, 2 * WHOLE), Sort.BEAT)
    assert outbox.put(a_call(3, 10), Sort.BEAT)
    assert Reader().drain(outbox, EVERYTHING) == [3, 1]
    assert outbox.put(a_call(4, 2 * WHOLE), Sort.BEAT)
    assert outbox.dropped == 1


def test_a_full_queue_drops_its_oldest_heartbeats_first() -> None:
    outbox = an_outbox(bytes_max=20_500)
    for number in range(3):
        outbox.put([b"heartbeat %d" % number], Sort.HEARTBEAT)
    assert outbox.put([BULK], Sort.SMALL)
    assert outbox.put([bytes(9_850)], Sort.SMALL)
    assert contents(outbox) == [b"heartbeat 2", BULK, bytes(9_850)]
    assert outbox.dropped == 2


def test_the_newest_append_is_refused_so_that_earlier_ones_stay_contiguous() -> None:
    outbox = an_outbox()
    taken = [outbox.put([b"%02d" % number, BULK], Sort.BULK) for number in range(12)]
    assert taken == [True] * 9 + [False] * 3
    assert outbox.dropped == 3


def test_appends_that_fill_their_lane_leave_room_for_small_messages() -> None:
    outbox = an_outbox()
    while outbox.put([BULK], Sort.BULK):
        pass
    for sort in (Sort.SMALL, Sort.HEARTBEAT, Sort.BEAT):
        assert outbox.put([b"small"], sort)


def test_small_messages_are_limited_too() -> None:
    outbox = an_outbox(messages_max=100)
    taken = sum(outbox.put([b"vote"], Sort.SMALL) for _ in range(1_000))
    assert taken == 100


def test_small_messages_overtake_the_pieces_of_a_large_one() -> None:
    outbox, reader = an_outbox(), Reader()
    assert outbox.put(a_call(1, 2 * WHOLE), Sort.BULK, "orders")
    seen = reader.read(outbox.take(PIECE)[0])
    outbox.put(a_call(2, 10), Sort.HEARTBEAT)
    outbox.put(a_call(3, 10), Sort.SMALL)
    outbox.put(a_call(4, 10), Sort.BULK, "another group")
    parts, count = outbox.take(PIECE)
    assert seen == []
    assert reader.read(parts) == [2, 3, 4]
    assert count == 3
    assert sum(map(len, parts)) < 2 * PIECE
    assert outbox.holds("orders")
    assert reader.drain(outbox, PIECE) == [1]
    assert not outbox.holds("orders")


def test_an_append_does_not_overtake_its_groups_large_one() -> None:
    outbox = an_outbox(bytes_max=1 << 20)
    for number, size in enumerate([10, 2 * WHOLE, 10, 10]):
        assert outbox.put(a_call(number, size), Sort.BULK, "orders")
    assert Reader().drain(outbox, PIECE) == [0, 1, 2, 3]


def test_a_large_append_does_not_overtake_its_groups_small_ones() -> None:
    outbox = an_outbox(bytes_max=1 << 20)
    for number in range(100):
        outbox.put(a_call(number, 2 * PIECE), Sort.BULK, "another group")
    outbox.put(a_call(100, 10), Sort.BULK, "orders")
    outbox.put(a_call(101, WHOLE), Sort.BULK, "orders")
    assert Reader().drain(outbox, PIECE) == list(range(102))


def test_large_messages_advance_however_many_small_ones_there_are() -> None:
    outbox, reader = an_outbox(), Reader()
    outbox.put(a_call(1, 2 * WHOLE), Sort.BULK, "orders")
    turns = 0
    while outbox.holds("orders"):
        turns += 1
        outbox.put(a_call(2, 2 * PIECE), Sort.SMALL)
        outbox.put(a_call(3, 2 * PIECE), Sort.BULK, "another group")
        assert set(reader.read(outbox.take(PIECE)[0])) - {1} == {2, 3}
    assert turns == 2 * WHOLE // PIECE + 1


def test_a_peer_that_does_not_accept_pieces_gets_whole_frames() -> None:
    outbox = an_outbox(bytes_max=1 << 20)
    outbox.cuts = False
    outbox.put(a_call(1, 2 * WHOLE), Sort.BULK, "orders")
    outbox.put(a_call(2, 10), Sort.BULK, "orders")
    outbox.put(a_call(3, 10), Sort.HEARTBEAT)
    assert outbox.take(PIECE)[0] == a_call(3, 10) + a_call(1, 2 * WHOLE)
    assert outbox.take(PIECE)[0] == a_call(2, 10)


def test_a_frame_larger_than_the_limit_is_taken_alone() -> None:
    outbox = an_outbox(bytes_max=WHOLE)
    assert outbox.put(a_call(1, 3 * WHOLE), Sort.BULK, "orders")
    assert not outbox.put(a_call(2, 3 * WHOLE), Sort.BULK, "another group")
    assert outbox.put(a_call(3, 10), Sort.BULK, "another group")
    assert outbox.put(a_call(4, 10), Sort.HEARTBEAT)
    assert Reader().drain(outbox, PIECE) == [4, 3, 1]


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(Sort), st.integers(1, 4_000), st.sampled_from("abc"))
        | st.integers(1, 9_000),
        max_size=200,
    ),
    cuts=st.booleans(),
)
def test_the_limits_always_hold_and_only_dropped_messages_are_lost(
    steps: list[tuple[Sort, int, str] | int], *, cuts: bool
) -> None:
    outbox, reader = an_outbox(bytes_max=20_000, messages_max=20, whole_bytes_max=2_000), Reader()
    outbox.cuts = cuts
    seen: list[int] = []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            seen += reader.read(outbox.take(step)[0])
        else:
            sort, size, stream = step
            outbox.put(a_call(number, size), sort, stream if sort is Sort.BULK else None)
        assert 0 <= outbox.size <= 3 * 20_000
        assert len(outbox) <= 3 * 20
    seen += reader.drain(outbox, PIECE)
    assert outbox.size == 0
    put = {number: step for number, step in enumerate(steps) if not isinstance(step, int)}
    assert len(seen) + outbox.dropped == len(put)
    assert len(set(seen)) == len(seen)
    for stream in "abc":
        kind = (Sort.BULK, stream)
        of_stream = [number for number in seen if (put[number][0], put[number][2]) == kind]
        assert of_stream == sorted(of_stream)
    small = [n for n in seen if put[n][0] is not Sort.BULK and put[n][1] < 1_700]
    assert small == sorted(small)
