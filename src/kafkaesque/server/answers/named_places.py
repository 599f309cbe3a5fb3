"""Partitions kept by topic id, grouped by topic with its name, as responses need them."""

from collections.abc import Iterable

from kafkaesque.machines.groups.consumer_commands import Place
from kafkaesque.machines.groups.group_records import packed
from kafkaesque.server.requests.session import Session


def named_places(
    places: Iterable[Place], session: Session
) -> list[tuple[bytes, str, tuple[int, ...]]]:
    """Return partitions by topic, with its id and name; deleted topics are left out."""
    catalog = session.broker.catalog
    found = [(catalog.topic_by_id(topic_id), indexes) for topic_id, indexes in packed(places)]
    return [(topic.topic_id, topic.name, indexes) for topic, indexes in found if topic is not None]
