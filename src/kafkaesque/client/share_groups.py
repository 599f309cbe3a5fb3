"""Share groups, as an administrator sees and changes them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import Router
from kafkaesque.client.topics import Place
from kafkaesque.types import Offset
from kafkaesque.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kafkaesque.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)

_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a share group is in a partition."""

    start: Offset
    """The first offset that is not done."""
    lag: int | None
    """How many offsets are not done; None if the broker does not say."""


class ShareGroups:
    """Queries and changes of share groups; errors are from `client.errors` and the base."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def standing(self, group: str) -> dict[Place, Standing]:
        """Return how far a group is in each partition that it has begun with."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=(asked,))

        def ask() -> dict[Place, Standing]:
            said = self._router.ask_coordinator(group, request, DescribeShareGroupOffsetsResponse)
            one = first(said.groups, f"group {group}")
            check(one.error_code, f"group {group}", one.error_message)
            found = {}
            for topic in one.topics:
                for each in topic.partitions:
                    where = f"partition {each.partition_index} of topic {topic.topic_name}"
                    check(each.error_code, f"group {group}, {where}", each.error_message)
                    if each.start_offset != _UNKNOWN:
                        found[topic.topic_name, each.partition_index] = Standing(
                            start=each.start_offset,
                            lag=None if each.lag == _UNKNOWN else each.lag,
                        )
            return found

        return self._router.question(ask)

    def set_starts(self, group: str, starts: Mapping[Place, Offset]) -> None:
        """Let a group without members begin again; the broker refuses if it has some.

        Setting the same starts twice is harmless, so this is retried after a loss.
        """
        by_topic: defaultdict[str, list[AlterShareGroupOffsetsRequestPartition]] = defaultdict(list)
        for (topic, partition), offset in starts.items():
            by_topic[topic].append(
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=partition, start_offset=offset
                )
            )
        request = AlterShareGroupOffsetsRequest(
            group_id=group,
            topics=tuple(
                AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=tuple(rows))
                for topic, rows in by_topic.items()
            ),
        )

        def ask() -> None:
            said = self._router.ask_coordinator(group, request, AlterShareGroupOffsetsResponse)
            check(said.error_code, f"group {group}", said.error_message)
            for topic in said.responses:
                for one in topic.partitions:
                    where = f"partition {one.partition_index} of topic {topic.topic_name}"
                    check(one.error_code, f"group {group}, {where}", one.error_message)

        self._router.question(ask)
