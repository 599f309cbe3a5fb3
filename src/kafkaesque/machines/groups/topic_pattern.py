"""Patterns for topic names, matched in time that no pattern can blow up.

Members subscribe by a regular expression, and no client may be able to stop the broker with one. So
this is no backtracking engine but an automaton, as RE2 is (R. Cox, "Regular Expression Matching Can
Be Simple And Fast", 2007). It reads a name once, tracking the set of all states it could be in.
Like RE2, it refuses what an automaton cannot do: backreferences and lookaround. It also refuses
what topic names have no use for: flags, word boundaries, classes by property. A name must match as
a whole.
"""

from typing import TypeAlias

from msgspec import Struct

from kafkaesque.machines.groups.group_errors import InvalidExpression

PATTERN_CHARS_MAX = 1_000
"""Far above any pattern in use: a longer one is a list of names, and should be sent as one."""

STATES_MAX = 2_000
"""States of one automaton: repetitions multiply, so a short pattern could need millions."""

DEPTH_MAX = 50
"""Nesting depth of parentheses."""

SETS_STATES_MAX = 20_000
"""States in all remembered sets, some 64 bytes each; above this, all are forgotten. Usual patterns
are in a few states at a time and never come near."""

_ASCII = frozenset(map(chr, range(128)))
_DIGIT = frozenset("0123456789")
_WORD = _DIGIT | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_SPACE = frozenset(" \t\n\r\f")
_CLASSES = {
    "d": _DIGIT,
    "w": _WORD,
    "s": _SPACE,
    "D": _ASCII - _DIGIT,
    "W": _ASCII - _WORD,
    "S": _ASCII - _SPACE,
}
_NO_LIMIT = -1


class _Chars(Struct, frozen=True):
    """Any of these characters."""

    chars: frozenset[str]


class _Edge(Struct, frozen=True):
    """Matches nothing, but only at the start, or at the end."""

    is_end: bool


class _Row(Struct, frozen=True):
    """A sequence."""

    nodes: "tuple[_Node, ...]"


class _Choice(Struct, frozen=True):
    """Any one of these alternatives."""

    nodes: "tuple[_Node, ...]"


class _Repeat(Struct, frozen=True):
    """From `least` to `most` times."""

    node: "_Node"
    least: int
    most: int


_Node: TypeAlias = _Chars | _Edge | _Row | _Choice | _Repeat


class TopicPattern:
    """A compiled pattern; raises InvalidExpression for an invalid one."""

    def __init__(self, text: str) -> None:
        if len(text) > PATTERN_CHARS_MAX:
            raise InvalidExpression(f"a pattern has at most {PATTERN_CHARS_MAX} characters")
        self._states: list[_State] = [None]
        """State 0 is the full match; every other state leads on."""
        self._steps: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        self.remembered = 0
        """The number of states in all these sets."""
        first = self._build(_Parser(text).whole(), 0)
        self._first = self._closed({first}, is_start=True)

    def matches(self, name: str) -> bool:
        """Return whether a name matches as a whole."""
        states = self._first
        for char in name:
            steps = self._steps.get(states)
            if steps is None:
                self._count(states)
                steps = self._steps[states] = {}
            after = steps.get(char)
            if after is None:
                after = steps[char] = self._after(states, char)
                self._count(after)
            if not after:
                return False
            states = after
        return 0 in self._closed(set(states), is_start=not name, is_end=True)

    def _count(self, states: frozenset[int]) -> None:
        if self.remembered + len(states) > SETS_STATES_MAX:
            self._steps.clear()
            self.remembered = 0
        self.remembered += len(states)

    def _after(self, states: frozenset[int], char: str) -> frozenset[int]:
        found = [self._states[number] for number in states]
        return self._closed(
            {s.next for s in found if isinstance(s, _Step) and char in s.chars}, is_start=False
        )

    def _closed(self, first: set[int], *, is_start: bool, is_end: bool = False) -> frozenset[int]:
        """Return these states and all reachable from them without a character."""
        reached, left = set(first), list(first)
        while left:
            state = self._states[left.pop()]
            ways: tuple[int, ...] = ()
            if isinstance(state, _Fork):
                ways = state.ways
            elif isinstance(state, _Gate) and (is_end if state.is_end else is_start):
                ways = (state.next,)
            for way in ways:
                if way not in reached:
                    reached.add(way)
                    left.append(way)
        return frozenset(reached)

    def _add(self, state: "_State") -> int:
        if len(self._states) >= STATES_MAX:
            raise InvalidExpression("the pattern repeats too much")
        self._states.append(state)
        return len(self._states) - 1

    def _build(self, node: _Node, after: int) -> int:
        """Add states that match a node and then continue at `after`; return the first."""
        match node:
            case _Chars(chars):
                return self._add(_Step(chars, after))
            case _Edge(is_end):
                return self._add(_Gate(is_end, after))
            case _Row(nodes):
                for one in reversed(nodes):
                    after = self._build(one, after)
                return after
            case _Choice(nodes):
                return self._add(_Fork(tuple(self._build(one, after) for one in nodes)))
            case _Repeat(inner, least, most):
                return self._build_repeat(inner, least, most, after)

    def _build_repeat(self, inner: _Node, least: int, most: int, after: int) -> int:
        if most == _NO_LIMIT:
            loop = self._add(_Fork((after,)))
            self._states[loop] = _Fork((self._build(inner, loop), after))
            after = loop
        else:
            end = after
            for _ in range(most - least):
                after = self._add(_Fork((self._build(inner, after), end)))
        for _ in range(least):
            after = self._build(inner, after)
        return after


class _Step(Struct, frozen=True):
    chars: frozenset[str]
    next: int


class _Gate(Struct, frozen=True):
    is_end: bool
    next: int


class _Fork(Struct, frozen=True):
    ways: tuple[int, ...]


_State: TypeAlias = _Step | _Gate | _Fork | None


class _Parser:
    """Parses a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._depth = 0

    def whole(self) -> _Node:
        node = self._choice()
        if self._place < len(self._text):
            raise InvalidExpression("unmatched closing parenthesis")
        return node

    @property
    def _next(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self) -> str:
        char = self._next
        if not char:
            raise InvalidExpression("the pattern ends too early")
        self._place += 1
        return char

    def _choice(self) -> _Node:
        nodes = [self._row()]
        while self._next == "|":
            self._place += 1
            nodes.append(self._row())
        return nodes[0] if len(nodes) == 1 else _Choice(tuple(nodes))

    def _row(self) -> _Node:
        nodes: list[_Node] = []
        while self._next not in ("", "|", ")"):
            nodes.append(self._repeated(self._one()))
        return _Row(tuple(nodes))

    def _one(self) -> _Node:
        char = self._take()
        match char:
            case "(":
                return self._group()
            case "[":
                return _Chars(self._set())
            case ".":
                return _Chars(_ASCII - {"\n"})
            case "^":
                return _Edge(is_end=False)
            case "$":
                return _Edge(is_end=True)
            case "\\":
                return _Chars(self._escaped())
            case "*" | "+" | "?":
                raise InvalidExpression("there is nothing to repeat")
            case _:
                return _Chars(frozenset(char))

    def _group(self) -> _Node:
        if self._next == "?":
            self._place += 1
            if self._take() != ":":
                raise InvalidExpression("of the groups that start with (? only (?: is supported")
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise InvalidExpression(f"parentheses may be nested at most {DEPTH_MAX} deep")
        node = self._choice()
        self._depth -= 1
        if self._take() != ")":
            raise InvalidExpression("a parenthesis is not closed")
        return node

    def _escaped(self) -> frozenset[str]:
        char = self._take()
        if char in _CLASSES:
            return _CLASSES[char]
        if char.isalnum():
            raise InvalidExpression(f"\\{char} is not supported")
        return frozenset(char)

    def _set(self) -> frozenset[str]:
        is_negated = self._next == "^"
        self._place += is_negated
        chars: frozenset[str] = frozenset()
        is_first = True
        while self._next != "]" or is_first:
            is_first = False
            chars |= self._range()
        self._place += 1
        return _ASCII - chars if is_negated else chars

    def _range(self) -> frozenset[str]:
        low = self._member()
        rest = self._text[self._place : self._place + 2]
        if not rest.startswith("-") or rest in ("-", "-]"):
            return low
        self._place += 1
        high = self._member()
        if len(low) != 1 or len(high) != 1 or min(low) > min(high):
            raise InvalidExpression("a range must go from one character to a later one")
        return frozenset(char for char in _ASCII if min(low) <= char <= min(high))

    def _member(self) -> frozenset[str]:
        char = self._take()
        if char == "[" and self._next == ":":
            raise InvalidExpression("named classes are not supported")
        return self._escaped() if char == "\\" else frozenset(char)

    def _repeated(self, node: _Node) -> _Node:
        match self._next:
            case "*":
                least, most = 0, _NO_LIMIT
            case "+":
                least, most = 1, _NO_LIMIT
            case "?":
                least, most = 0, 1
            case "{":
                return self._counted(node)
            case _:
                return node
        self._place += 1
        return self._ended(_Repeat(node, least, most))

    def _counted(self, node: _Node) -> _Node:
        end = self._text.find("}", self._place)
        least, comma, most = self._text[self._place + 1 : end].partition(",")
        numbers = [one for one in (least, most) if one]
        is_sane = all(one.isascii() and one.isdigit() and len(one) <= 4 for one in numbers)
        if end < 0 or not least or not is_sane:
            raise InvalidExpression("a repetition in braces must be {3}, {3,} or {3,5}")
        self._place = end + 1
        limit = int(most) if most else (_NO_LIMIT if comma else int(least))
        if limit != _NO_LIMIT and limit < int(least):
            raise InvalidExpression("a repetition must go from fewer to more times")
        return self._ended(_Repeat(node, int(least), limit))

    def _ended(self, node: _Node) -> _Node:
        """Skip the mark of a lazy repetition: it makes no difference to a match as a whole."""
        self._place += self._next == "?"
        if self._next in ("*", "+", "{"):
            raise InvalidExpression("a repetition cannot be repeated again")
        return node
