"""Connections that outlive a task, because Spark reuses its Python workers.

Each process has its own, because a forked process must not use its parent's connections.
"""

import os
from dataclasses import dataclass, field

from kafkaesque.client.admin import Admin
from kafkaesque.client.producer import Producer
from kafkaesque.record.view import Codec
from kafkaesque.spark.options import Cluster

_CLUSTERS_MAX = 16
"""Clusters that one process remembers; a worker serves few queries at a time."""


@dataclass(slots=True)
class _Kept:
    """The open connections of this process."""

    pid: int = -1
    admins: dict[Cluster, Admin] = field(default_factory=dict)
    producers: dict[tuple[Cluster, Codec], Producer] = field(default_factory=dict)


_kept = _Kept()


def admin_of(cluster: Cluster) -> Admin:
    """Return this process's client for a cluster."""
    kept = _of_this_process()
    found = kept.admins.get(cluster)
    if found is None:
        if len(kept.admins) >= _CLUSTERS_MAX:
            forget_all()
        found = kept.admins[cluster] = Admin(cluster.bootstrap, cluster.config)
    return found


def producer_of(cluster: Cluster, codec: Codec) -> Producer:
    """Return this process's producer for a cluster, a new one if the last one failed."""
    admin, kept = admin_of(cluster), _of_this_process()
    found = kept.producers.get((cluster, codec))
    if found is None or found.is_spent:
        found = kept.producers[cluster, codec] = admin.producer(codec)
    return found


def forget_all() -> None:
    """Close all connections; they are opened again on demand."""
    kept = _of_this_process()
    for admin in kept.admins.values():
        admin.close()
    kept.admins.clear()
    kept.producers.clear()


def _of_this_process() -> _Kept:
    pid = os.getpid()
    if _kept.pid != pid:
        _kept.pid = pid
        _kept.admins = {}
        _kept.producers = {}
    return _kept
