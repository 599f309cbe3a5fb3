"""The assignors of Kafka's consumer groups, run by the coordinator: `range` and `uniform`.

`range` gives each member of a topic a run of neighbouring partitions, and the same partition
numbers of every topic to the same member, so that topics partitioned alike can be joined.
`uniform` gives every member the same number of partitions and moves none without need.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import TypeVar

from msgspec import Struct

from kafkaesque.machines.groups.group_commands import TopicPartition
from kafkaesque.machines.groups.group_errors import UnsupportedAssignor

Shares = dict[str, set[TopicPartition]]

ROUNDS_MAX = 100
"""Limit on rounds that balance unlike members: each one improves it, two or three are enough."""

ItemT = TypeVar("ItemT", bound=Hashable)
HolderT = TypeVar("HolderT", bound=Hashable)


class Candidate(Struct, frozen=True, kw_only=True):
    """A member as an assignor sees it."""

    member_id: str
    rank: str
    """The order of members: an instance keeps its place under another id."""
    topics: Set[bytes]
    """The ids of the topics it wants; all of them exist."""
    before: Set[TopicPartition]
    """Its target so far."""


Assignor = Callable[[Sequence[Candidate], Mapping[bytes, int]], Shares]
"""Maps members, and topics with their partition counts, to each member's partitions."""


def assign_range(members: Sequence[Candidate], topics: Mapping[bytes, int]) -> Shares:
    """Give each member a run of each topic's partitions; the first members get one more each."""
    shares: Shares = {one.member_id: set() for one in members}
    ordered = sorted(members, key=lambda one: (one.rank, one.member_id))
    for topic, partitions in topics.items():
        readers = [one for one in ordered if topic in one.topics]
        if not readers:
            continue
        size, rest = divmod(partitions, len(readers))
        start = 0
        for number, one in enumerate(readers):
            end = start + size + (number < rest)
            shares[one.member_id].update((topic, index) for index in range(start, end))
            start = end
    return shares


def assign_uniform(members: Sequence[Candidate], topics: Mapping[bytes, int]) -> Shares:
    """Give each member the same number, as far as topics allow; members keep what they have."""
    if not members:
        return {}
    ordered = sorted(members, key=lambda one: (one.rank, one.member_id))
    if all(one.topics == ordered[0].topics for one in ordered):
        return _uniform_alike(ordered, topics)
    return _uniform_unlike(ordered, topics)


def places_of(topics: Mapping[bytes, int], wanted: Set[bytes]) -> list[TopicPartition]:
    """Return all partitions of the wanted topics."""
    return [(topic, i) for topic, count in topics.items() if topic in wanted for i in range(count)]


def _uniform_alike(members: Sequence[Candidate], topics: Mapping[bytes, int]) -> Shares:
    return spread(
        places_of(topics, members[0].topics),
        {one.member_id: sorted(one.before) for one in members},
    )


def spread(
    items: Iterable[ItemT], before: Mapping[HolderT, Sequence[ItemT]]
) -> dict[HolderT, set[ItemT]]:
    """Give each item to one holder, all holders the same number; they keep what they had."""
    free = dict.fromkeys(items)
    size, rest = divmod(len(free), len(before))
    kept = {holder: [one for one in had if one in free] for holder, had in before.items()}
    # Holders of most items get the larger quotas, so that as few as possible must move.
    by_count = sorted(before, key=lambda holder: -len(kept[holder]))
    shares: dict[HolderT, set[ItemT]] = {}
    for number, holder in enumerate(by_count):
        quota = size + (number < rest)
        mine = [one for one in kept[holder] if one in free][:quota]
        shares[holder] = set(mine)
        for one in mine:
            del free[one]
    left = iter(free)
    for number, holder in enumerate(by_count):
        share = shares[holder]
        for _ in range(size + (number < rest) - len(share)):
            share.add(next(left))
    return shares


def _uniform_unlike(members: Sequence[Candidate], topics: Mapping[bytes, int]) -> Shares:
    shares: Shares = {one.member_id: set() for one in members}
    readers = {topic: [one.member_id for one in members if topic in one.topics] for topic in topics}
    owner: dict[TopicPartition, str] = {}
    for one in members:
        for place in one.before:
            topic, index = place
            if topic in one.topics and index < topics.get(topic, 0) and place not in owner:
                owner[place] = one.member_id
    load = Counter({one.member_id: 0 for one in members})
    load.update(owner.values())
    for topic in sorted(topics, key=lambda one: len(readers[one])):
        heap = [(load[name], number, name) for number, name in enumerate(readers[topic])]
        heapq.heapify(heap)
        for index in range(topics[topic] if heap else 0):
            if (topic, index) not in owner:
                count, number, name = heap[0]
                owner[topic, index] = name
                load[name] += 1
                heapq.heapreplace(heap, (count + 1, number, name))
    _balance(owner, readers, load)
    for place, name in owner.items():
        shares[name].add(place)
    return shares


def _balance(
    owner: dict[TopicPartition, str], readers: Mapping[bytes, Sequence[str]], load: Counter[str]
) -> None:
    """Move partitions from members that have more to members that have fewer and want them."""
    for _ in range(ROUNDS_MAX):
        has_moved = False
        for place in sorted(owner):
            name = owner[place]
            least = min(readers[place[0]], key=lambda one: load[one])
            if load[name] > load[least] + 1:
                owner[place] = least
                load[name] -= 1
                load[least] += 1
                has_moved = True
        if not has_moved:
            return


DEFAULT = "uniform"
ASSIGNORS: Mapping[str, Assignor] = {DEFAULT: assign_uniform, "range": assign_range}


def check_assignor(name: str) -> None:
    """Raise UnsupportedAssignor for an unknown assignor; an empty name means no preference."""
    if name and name not in ASSIGNORS:
        known = ", ".join(ASSIGNORS)
        raise UnsupportedAssignor(f"there is no assignor {name!r}, only {known}")


def chosen_assignor(wishes: Sequence[str]) -> str:
    """Return the assignor that most members prefer; a tie goes to the first in the table."""
    counts = Counter(name for name in wishes if name)
    return max(ASSIGNORS, key=lambda name: counts[name]) if counts else DEFAULT


def is_whole(shares: Sequence[Set[TopicPartition]], wanted: Set[TopicPartition]) -> bool:
    """Return whether the shares cover exactly these partitions, each of them once."""
    return sum(map(len, shares)) == len(wanted) and set(chain(*shares)) == wanted
