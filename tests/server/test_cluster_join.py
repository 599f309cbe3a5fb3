"""How a broker joins a cluster through one address: when it retries, and what it is answered."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from kafkaesque.broker.storage.identity import FolderIdentity, KnownPeer
from kafkaesque.gossip.config import GossipConfig
from kafkaesque.gossip.messages import Member, Sync
from kafkaesque.machines.catalog.catalog_commands import AdmitBroker, Carried, CatalogAnswer
from kafkaesque.machines.catalog.features import supported
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.gossip_codec import encode_packet
from kafkaesque.net.ports import Question
from kafkaesque.server.peers import cluster_join
from kafkaesque.server.peers.cluster_join import CannotJoin, join, meet
from kafkaesque.server.peers.peering import Admission, Application, Peering
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.testing.ports import HeldPort
from tests.net.identities import SECRET, an_identity
from tests.net.linking import SECONDS_MAX, End, listening, strange
from tests.server.memory_broker import MemoryBroker

HASTY = LinkConfig(call_ms_max=30)
ADMISSION = Admission(cluster="kitchen", node=7, peers=())
APPLICATION = Application(
    directory=b"7" * 16, host="here", port=9, rack="", levels=dict(supported())
)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_join, "TRY_EVERY_S", 0.001)


async def joined(on_question: Callable[[Question], None]) -> Admission:
    """Join at a broker that handles calls in this way."""
    one = End(an_identity(1), on_question=on_question)
    async with listening(one):
        return await join(("127.0.0.1", one.port), APPLICATION, SECRET, HASTY)


@pytest.mark.complains(
    "join_waits address=127.0.0.1:*: no broker accepts this one yet: no answer came within 30 ms",
)
def test_an_unanswered_join_is_retried_with_the_same_folder() -> None:
    asked: list[bytes] = []

    def answer_the_second(question: Question) -> None:
        asked.append(bytes(question.data))
        if len(asked) == 2:
            question.reply(msgspec.msgpack.encode(ADMISSION))

    assert asyncio.run(joined(answer_the_second)) == ADMISSION
    assert len(asked) == 2
    assert len(set(asked)) == 1


@pytest.mark.complains(
    "join_waits address=127.0.0.1:*: no broker accepts this one yet: no answer came within 30 ms",
)
def test_a_broker_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_join, "JOIN_S_MAX", 0.05)
    with pytest.raises(CannotJoin, match=r"cannot join the cluster at .*: no answer came"):
        asyncio.run(joined(lambda _: None))


@pytest.mark.complains(
    "join_waits address=127.0.0.1:*: no broker accepts this one yet: cannot connect: *",
)
def test_a_waiting_broker_reports_at_once_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster_join, "TRIES_MAX", 5)
    monkeypatch.setattr(cluster_join, "TRY_EVERY_S", 0.001)
    monkeypatch.setattr(cluster_join, "SAID_EVERY", 2)
    held = HeldPort()
    address = "127.0.0.1", held.port
    with pytest.raises(CannotJoin):
        asyncio.run(join(address, APPLICATION, b"", LinkConfig()))
    said = [one.getMessage() for one in caplog.records if "join_waits" in one.getMessage()]
    assert len(said) == 2
    assert f"address=127.0.0.1:{address[1]}" in said[0]


def test_a_port_of_another_program_is_not_retried() -> None:
    asked: list[Question] = []

    def talk(question: Question) -> None:
        asked.append(question)
        question.reply(b"good morning")

    with pytest.raises(CannotJoin, match="no Kafkaesque broker"):
        asyncio.run(joined(talk))
    assert len(asked) == 1


@pytest.mark.complains("link_refused peer=127.0.0.1:* reason='a frame of * bytes, the limit is *")
@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n", b"SSH-2.0-OpenSSH\r\n"])
def test_another_protocol_is_reported_with_its_address(greeting: bytes) -> None:
    async def go() -> None:
        async with strange(greeting) as stranger:
            address = stranger.address
            await join(address, APPLICATION, SECRET, LinkConfig())

    with pytest.raises(CannotJoin, match=r"^no Kafkaesque broker answers at 127\.0\.0\.1:\d+"):
        asyncio.run(go())


@pytest.mark.complains("link_refused peer=127.0.0.1:* reason='a frame of * bytes, the limit is *")
def test_a_used_folder_is_not_started_when_the_join_address_is_another_program() -> None:
    folder = FolderIdentity(cluster="kitchen", node=7, directory=b"7" * 16, is_founder=False)

    async def go() -> None:
        async with strange(b"HTTP/1.1 400 Bad Request\r\n") as stranger:
            address = stranger.address
            await meet(address, folder, SECRET, LinkConfig())

    with pytest.raises(CannotJoin, match=r"^no Kafkaesque broker answers at 127\.0\.0\.1:\d+"):
        asyncio.run(go())


@pytest.mark.complains("link_refused peer=127.0.0.1:* reason='a cluster without a secret *")
def test_joining_another_machine_without_a_secret_is_refused_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaesque.net.link.is_this_machine", lambda _: False)

    async def go() -> None:
        one = End(an_identity(1))
        async with listening(one):
            await join(("127.0.0.1", one.port), APPLICATION, b"", LinkConfig())

    with pytest.raises(CannotJoin, match="give the cluster's secret with --secret-file"):
        asyncio.run(go())


@pytest.mark.complains("join_waits address=*: no broker accepts this one yet: cannot connect: *")
def test_an_unreachable_cluster_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_join, "TRIES_MAX", 2)
    held = HeldPort()
    address = "127.0.0.1", held.port
    with pytest.raises(CannotJoin) as caught:
        asyncio.run(join(address, APPLICATION, SECRET, LinkConfig()))
    assert str(caught.value).startswith(
        f"cannot join the cluster at 127.0.0.1:{address[1]}: cannot connect: "
    )
    assert str(caught.value).count("127.0.0.1") == 1


async def met(cluster: str, *, is_there: bool = True) -> int:
    """Start with a used folder of this cluster, and join a broker of the cluster `kitchen`.

    Returns how many links that broker has refused.
    """
    one = End(an_identity(1))
    folder = FolderIdentity(cluster=cluster, node=7, directory=b"7" * 16, is_founder=False)
    async with listening(one):
        address = "127.0.0.1", one.port if is_there else 1
        await meet(address, folder, SECRET, LinkConfig())
        return one.links.refused


@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='one broker belongs to cluster pantry, the *",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: one broker *",
)
def test_a_used_folder_of_another_cluster_is_refused() -> None:
    with pytest.raises(CannotJoin, match=r"refuses .* cluster pantry.* with an empty folder"):
        asyncio.run(met("pantry"))


def test_a_used_folder_of_the_same_cluster_is_accepted() -> None:
    assert asyncio.run(met(an_identity(1).cluster)) == 0


def test_a_used_folder_starts_even_if_the_join_address_is_unreachable() -> None:
    assert asyncio.run(met("pantry", is_there=False)) == 0


def test_a_broker_missing_from_its_own_catalog_copy_admits_others() -> None:
    """A broker that has just joined may get the next join before its copy has caught up."""
    folder = FolderIdentity(cluster="kitchen", node=2, directory=b"2" * 16, is_founder=False)
    me = Member(node=2, host="there", port=5, rack="", incarnation=1)
    memory = MemoryBroker()
    assert 2 not in memory.broker.committed_catalog.machine.brokers

    async def go() -> Admission:
        configs = (LinkConfig(), GossipConfig())
        peering = Peering(folder, me, SECRET, configs, Turn(), supported())
        peering.attach(memory.broker)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(peering.links.accept, "127.0.0.1", 0)
        peering.start()
        address = server.sockets[0].getsockname()
        asking = loop.create_task(join(address, APPLICATION, SECRET, LinkConfig()))
        try:
            async with asyncio.timeout(SECONDS_MAX):
                while not asking.done():
                    memory.settle()
                    await asyncio.sleep(0.001)
            return asking.result()
        finally:
            asking.cancel()
            server.close()
            await peering.close()

    admission = asyncio.run(go())
    assert admission.cluster == "kitchen"
    assert admission.peers[0] == KnownPeer(node=2, host="there", port=5, directory=b"2" * 16)


def test_the_address_that_a_broker_reports_overrides_the_one_in_the_catalog() -> None:
    """Several brokers may return elsewhere at once, and the catalog learns of one at a time."""
    folder = FolderIdentity(cluster="kitchen", node=1, directory=b"1" * 16, is_founder=True)
    me = Member(node=1, host="here", port=5, rack="", incarnation=1)
    memory = MemoryBroker()

    async def go() -> list[tuple[int, str, int]]:
        configs = (LinkConfig(), GossipConfig())
        peering = Peering(folder, me, SECRET, configs, Turn(), supported())
        peering.attach(memory.broker)
        peering.start()

        def admit(name: bytes) -> int:
            answers: list[CatalogAnswer] = []
            application = msgspec.structs.asdict(APPLICATION) | {"directory": name * 16}
            memory.broker.ask(AdmitBroker(**application), answers.append)
            memory.settle()
            (answer,) = answers
            assert isinstance(answer, Carried)
            return answer.first_id

        moved = admit(b"2")
        said = Member(node=moved, host="there", port=6, incarnation=7)
        packet = encode_packet(Sync(sender=said, is_answer=True, news=()))
        peering.gossiping.receive(memoryview(packet))
        admit(b"3")
        try:
            return [(peer.node, peer.host, peer.port) for peer in peering.known]
        finally:
            await peering.close()

    (second, third) = asyncio.run(go())
    assert second[1:] == ("there", 6)
    assert third[1:] == ("here", 9)
