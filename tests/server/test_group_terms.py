"""The leader epoch of a committed offset: without it a client cannot tell that it is outdated."""

from pathlib import Path

from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from tests.server.test_connection import Client
from tests.server.test_groups import GROUP, ask, committed, over_a_socket

TERM = 3


def test_a_committed_offset_keeps_its_leader_epoch_across_a_restart(tmp_path: Path) -> None:
    async def before(client: Client) -> None:
        one = OffsetCommitRequestPartition(
            partition_index=0,
            committed_offset=5,
            committed_leader_epoch=TERM,
            committed_metadata=None,
        )
        row = OffsetCommitRequestTopic(name="orders", topic_id=bytes(16), partitions=(one,))
        request = OffsetCommitRequest(
            group_id=GROUP, generation_id_or_member_epoch=-1, member_id="", topics=(row,)
        )
        assert await committed(client, request) == 0

    async def after(client: Client) -> None:
        groups = (OffsetFetchRequestGroup(group_id=GROUP, topics=None),)
        answer = await ask(client, OffsetFetchRequest(groups=groups), 9, OffsetFetchResponse)
        (topic,) = answer.groups[0].topics
        found = [(one.committed_offset, one.committed_leader_epoch) for one in topic.partitions]
        assert found == [(5, TERM)]

    over_a_socket(tmp_path, before)
    over_a_socket(tmp_path, after)
