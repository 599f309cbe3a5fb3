"""Lines are complete however the bytes arrive, and a bad line does not affect others."""

from hypothesis import example, given
from hypothesis import strategies as st

from kafkaesque.gateway.text_lines import BadLine, LineSplitter

LIMIT = 10
ENDS = st.sampled_from(["\n", "\r\n", "\r\0"])
LINES = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=LIMIT // 4)


def taken(splitter: LineSplitter) -> list[str | BadLine]:
    found: list[str | BadLine] = []
    while (line := splitter.take()) is not None:
        found.append(line)
    return found


def read(data: bytes, sizes: list[int]) -> list[str | BadLine]:
    """Feed the bytes in pieces of these sizes, then the rest."""
    splitter = LineSplitter(LIMIT)
    found: list[str | BadLine] = []
    for size in sizes:
        splitter.feed(data[:size])
        data = data[size:]
        found += taken(splitter)
    splitter.feed(data)
    return found + taken(splitter)


@given(
    lines=st.lists(st.tuples(LINES, ENDS), max_size=10),
    sizes=st.lists(st.integers(0, 8), max_size=20),
)
@example(lines=[("a", "\r\n"), ("b", "\r\0")], sizes=[2, 2])
def test_lines_are_the_same_wherever_the_bytes_are_cut(
    lines: list[tuple[str, str]], sizes: list[int]
) -> None:
    data = "".join(line + end for line, end in lines).encode()
    assert read(data, sizes) == [line for line, _ in lines]


@given(st.binary(max_size=100), st.lists(st.integers(0, 8), max_size=20))
def test_any_bytes_give_lines_or_sentences_and_nothing_else(data: bytes, sizes: list[int]) -> None:
    for line in read(data, sizes):
        assert isinstance(line, str | BadLine)


@given(st.integers(LIMIT + 1, 100), st.lists(st.integers(1, 30), max_size=10))
def test_a_line_that_is_too_long_is_reported_once_and_the_next_one_is_read(
    size: int, sizes: list[int]
) -> None:
    first, second = read(b"x" * size + b"\r\nnext\n", sizes)
    assert isinstance(first, BadLine)
    assert second == "next"


def test_a_line_that_is_not_utf_8_is_reported_and_the_next_one_is_read() -> None:
    first, second = read(b"\xc3\x28\nnext\n", [])
    assert isinstance(first, BadLine)
    assert second == "next"


def test_an_endless_line_is_never_buffered() -> None:
    splitter = LineSplitter(LIMIT)
    splitter.feed(b"x" * 2 * LIMIT)
    assert len(taken(splitter)) == 1
    for _ in range(1_000):
        splitter.feed(b"x" * 1_000)
        assert splitter.held_bytes == 0
        assert taken(splitter) == []
    splitter.feed(b"\nHELP\n")
    assert taken(splitter) == ["HELP"]


def test_an_unterminated_line_is_not_a_line() -> None:
    assert read(b"CRTP half", [3]) == []
