"""Share groups as requests for other groups see them, over a socket."""

import asyncio
from pathlib import Path

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.groups.consumer_commands import TopicsKnown
from kafkaesque.machines.groups.share_commands import ShareHeartbeat, ShareTold
from kafkaesque.node import Node, NodeSettings
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kafkaesque.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkaesque.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.join_group import JoinGroupResponse
from kafkaesque.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafkaesque.wire.messages.metadata import MetadataResponse
from tests.server.test_connection import Client, a_topic
from tests.server.test_groups import GROUP, ask, commit, committed, fetched, join

LISTED = ListedGroup(
    group_id=GROUP, protocol_type="share", group_state="Stable", group_type="share"
)


async def share(broker: Broker, epoch: int = 0) -> ShareTold | KafkaesqueError:
    """Be heard from as a member, at the coordinator itself."""
    catalog = broker.committed_catalog.machine
    future: asyncio.Future[ShareTold | KafkaesqueError] = asyncio.Future()
    command = ShareHeartbeat(
        group=GROUP,
        member_id="me",
        epoch=epoch,
        topics=TopicsKnown(mark=catalog.topics_mark, topics=catalog.topics),
        names=frozenset({"orders"}),
    )
    broker.coordinators.of(GROUP).ask(command, future.set_result)
    return await future


async def names_listed(
    client: Client, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> tuple[ListedGroup, ...]:
    wanted = ListGroupsRequest(states_filter=states, types_filter=types)
    return (await ask(client, wanted, 5, ListGroupsResponse)).groups


async def story(node: Node, client: Client) -> None:
    told = await share(node.broker)
    assert isinstance(told, ShareTold)
    assert len(told.assigned or ()) > 0
    for types, states, found in (
        ((), (), (LISTED,)),
        (("Share",), ("stable",), (LISTED,)),
        (("share",), ("Empty",), ()),
        (("classic", "consumer"), (), ()),
    ):
        assert await names_listed(client, states, types) == found, (types, states)
    for version, code in ((5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
        old = DescribeGroupsRequest(groups=(GROUP,))
        (shown,) = (await ask(client, old, version, DescribeGroupsResponse)).groups
        assert (shown.error_code, shown.group_state, shown.members) == (code, "Dead", ())
    new = ConsumerGroupDescribeRequest(group_ids=(GROUP,))
    (described,) = (await ask(client, new, 1, ConsumerGroupDescribeResponse)).groups
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    joined = await ask(client, join(), 9, JoinGroupResponse)
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert await committed(client, commit(1)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert await fetched(client) == {}
    delete = DeleteGroupsRequest(groups_names=(GROUP,))
    for epoch, code in ((0, ErrorCode.NON_EMPTY_GROUP), (-1, ErrorCode.NONE)):
        assert isinstance(await share(node.broker, epoch), ShareTold)
        (result,) = (await ask(client, delete, 2, DeleteGroupsResponse)).results
        assert result.error_code == code
    assert await names_listed(client) == ()


def test_a_share_group_is_listed_and_is_unknown_to_requests_for_other_groups(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        node = Node(NodeSettings(port=0, data=tmp_path))
        await node.start()
        client = Client(*await asyncio.open_connection("127.0.0.1", node.port))
        try:
            await client.ask(a_topic("orders"), 9, MetadataResponse)
            await client.ask(FindCoordinatorRequest(key=GROUP), 0, FindCoordinatorResponse)
            await story(node, client)
        finally:
            client.writer.transport.abort()
            await node.stop()

    asyncio.run(go())
