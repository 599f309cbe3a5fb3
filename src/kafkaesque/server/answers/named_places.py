"""Partitions kept by topic id, grouped by topic with its name, as responses need them."""

from collections import defaultdict
from collections.abc import Iterable

from kafkaesque.machines.groups.consumer_commands import Place
from kafkaesque.server.requests.session import Session


def named_places(
    places: Iterable[Place], session: Session
) -> list[tuple[bytes, str, tuple[int, ...]]]:
    """Return partitions by topic, with its id and name; deleted topics are left out."""
    by_topic: defaultdict[bytes, list[int]] = defaultdict(list)
    for topic_id, index in sorted(places):
        by_topic[topic_id].append(index)
    catalog = session.broker.catalog
    found = [(catalog.topic_by_id(topic_id), some) for topic_id, some in by_topic.items()]
    return [(topic.topic_id, topic.name, tuple(some)) for topic, some in found if topic is not None]
