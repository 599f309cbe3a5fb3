"""The assignor of share groups: several members may read one partition.

Every partition is read by at least one member that wants it, and every member reads something if
there is anything that it wants. With more partitions than members each partition has one reader,
and members have the same number of partitions. With more members each has one partition, and
partitions have the same number of readers. Members that want different topics come as close to that
as their topics allow. Nothing moves without need.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from kafkaesque.machines.groups.assignors import (
    ROUNDS_MAX,
    Candidate,
    Shares,
    assign_uniform,
    places_of,
    spread,
)
from kafkaesque.machines.groups.group_commands import TopicPartition

SIMPLE = "simple"
"""Its name, which is Kafka's."""


def assign_shared(members: Sequence[Candidate], topics: Mapping[bytes, int]) -> Shares:
    """Return which partitions each member reads."""
    if not members:
        return {}
    ordered = sorted(members, key=lambda one: one.member_id)
    places = places_of(topics, ordered[0].topics)
    is_alike = all(one.topics == ordered[0].topics for one in ordered)
    if is_alike and 0 < len(places) < len(ordered):
        return _one_each(ordered, places)
    shares = assign_uniform(ordered, topics)
    _join_in(shares, ordered, topics)
    return shares


def _one_each(members: Sequence[Candidate], places: Sequence[TopicPartition]) -> Shares:
    """Spread members over partitions: as partitions over members, with the roles swapped."""
    readers: defaultdict[TopicPartition, list[str]] = defaultdict(list)
    for one in members:
        for place in one.before:
            readers[place].append(one.member_id)
    spread_out = spread(
        (one.member_id for one in members), {place: readers[place] for place in places}
    )
    return {name: {place} for place, names in spread_out.items() for name in names}


def _join_in(shares: Shares, members: Sequence[Candidate], topics: Mapping[bytes, int]) -> None:
    """Let members that got nothing read what others read, each one partition."""
    idle = [one for one in members if not shares[one.member_id]]
    readers = Counter(chain(*shares.values())) if idle else Counter[TopicPartition]()
    wanted = {one.member_id: places_of(topics, one.topics) for one in idle}
    here: dict[str, TopicPartition] = {}
    # Those that had something choose first, and may keep it.
    for keeps in (True, False):
        for one in idle:
            name = one.member_id
            options = [place for place in wanted[name] if not keeps or place in one.before]
            if options and name not in here:
                here[name] = min(options, key=lambda place: readers[place])
                readers[here[name]] += 1
    for _ in range(ROUNDS_MAX):
        has_moved = False
        for name, place in here.items():
            least = min(wanted[name], key=lambda one: readers[one])
            if readers[place] > readers[least] + 1:
                readers[place] -= 1
                readers[least] += 1
                here[name] = least
                has_moved = True
        if not has_moved:
            break
    for name, place in here.items():
        shares[name] = {place}
