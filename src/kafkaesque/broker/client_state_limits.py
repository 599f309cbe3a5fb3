"""How much is used of each limit on what clients leave behind, on this broker."""

from collections.abc import Mapping

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.queues.share_sessions import PLACES_MAX, SESSIONS_MAX
from kafkaesque.machines.catalog.catalog import ALL_PARTITIONS_MAX, ALL_SETTINGS_BYTES_MAX
from kafkaesque.machines.catalog.group_settings import GROUPS_MAX
from kafkaesque.machines.queues.share_states import ShareStateLimits


def taken(broker: Broker) -> Mapping[str, float]:
    """Return the used share of each limit; among many coordinators, that of the fullest."""
    groups, transactions = broker.config.groups, broker.config.transactions
    members = [one.members_bytes for one in broker.coordinators.all]
    offsets = [one.offsets_bytes for one in broker.coordinators.all]
    coordinators = broker.transactions.coordinators.all
    ids = [one.id_count for one in coordinators]
    places = [one.place_count for one in coordinators]
    partitions = sum(topic.partitions for topic in broker.catalog.topics.values())
    states = [one.machine for one in broker.shares.desk.coordinators.all]
    share_bytes = [one.state_bytes for one in states if one is not None]
    shared = broker.shares.sessions
    fetch, sessions = broker.config.fetch, broker.fetch_sessions
    return {
        "group members": max(members, default=0) / groups.members_bytes_max,
        "group offsets": max(offsets, default=0) / groups.offsets_bytes_max,
        "transactional ids": max(ids, default=0) / transactions.ids_max,
        "transaction partitions": max(places, default=0) / transactions.places_max,
        "partitions": partitions / ALL_PARTITIONS_MAX,
        "topic settings": broker.catalog.settings_bytes / ALL_SETTINGS_BYTES_MAX,
        "producers": broker.sweep.known / broker.config.producers.all_max,
        "fetch sessions": sessions.partitions / fetch.sessions_partitions_max,
        "group settings": len(broker.catalog.group_settings) / GROUPS_MAX,
        "share sessions": len(shared) / SESSIONS_MAX,
        "share session partitions": shared.places / PLACES_MAX,
        "share state": max(share_bytes, default=0) / ShareStateLimits().bytes_max,
    }
