"""Consumer groups keep their promises under any order of joins, leaves, losses and restarts."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.groups.group import ClassicGroup
from kafkaesque.machines.groups.group_commands import Committed, Identity, Joined, Protocol, Synced
from kafkaesque.machines.groups.group_errors import MemberIdRequired
from kafkaesque.machines.groups.groups import Groups
from tests.machines.group_desk import GROUP, RANGE, STICKY, Desk, Waiting, subscription

PARTITIONS = 4
CLIENTS = 4
ROUNDS = 5
"""Enough to get an id, to join with it, and to get an assignment."""
WAIT_MS_MAX = 120_000
"""Longer than all timeouts of the model in sequence."""

PROTOCOLS = (
    (RANGE,),
    (RANGE, STICKY),
    (STICKY, RANGE),
    (Protocol("range", subscription("payments")),),
)


@dataclass
class Client:
    """A consumer: what it believes, and what it waits for."""

    name: str
    instance: str | None
    member_id: str = ""
    generation: int = -1
    leads: bool = False
    others: tuple[str, ...] = ()
    join: Waiting | None = None
    sync: Waiting | None = None
    protocols: tuple[Protocol, ...] = field(default=(RANGE,))


class GroupModel(RuleBasedStateMachine):
    """Clients, some with instance ids, against one group."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(GroupConfig(initial_rebalance_delay_ms=100, new_member_wait_ms_max=20_000))
        self.clients = [
            Client(name=f"c{n}", instance=f"i{n}" if n % 2 else None) for n in range(CLIENTS)
        ]
        self.owners: dict[tuple[int, int], str] = {}
        self.joins: dict[int, set[str]] = {}
        self.all_waits: list[Waiting] = []
        self.highest = 0

    @rule(
        number=st.integers(0, CLIENTS - 1),
        protocols=st.sampled_from(PROTOCOLS),
        is_fresh=st.booleans(),
    )
    def join_group(self, number: int, protocols: tuple[Protocol, ...], is_fresh: bool) -> None:
        client = self.clients[number]
        if is_fresh:
            client.member_id = ""  # it was restarted and remembers nothing
        client.generation, client.sync = -1, None
        client.protocols = protocols
        client.join = self.desk.join(
            client.member_id,
            *protocols,
            instance=client.instance,
            session_ms=8_000,
            rebalance_ms=12_000,
        )
        self.all_waits.append(client.join)

    @rule(number=st.integers(0, CLIENTS - 1), turn=st.integers(0, CLIENTS - 1))
    def sync_group(self, number: int, turn: int) -> None:
        client = self.clients[number]
        if client.generation < 0:
            return
        parts: list[tuple[str, bytes]] = []
        if client.leads:
            shares: dict[str, list[int]] = {name: [] for name in client.others}
            for partition in range(PARTITIONS):
                place = (partition + turn) % len(client.others)
                shares[client.others[place]].append(partition)
            parts = [(name, bytes(share)) for name, share in shares.items()]
        client.sync = self.desk.sync(
            client.member_id, client.generation, *parts, instance=client.instance
        )
        self.all_waits.append(client.sync)

    @rule(number=st.integers(0, CLIENTS - 1))
    def send_heartbeat(self, number: int) -> None:
        client = self.clients[number]
        self.desk.heartbeat(client.member_id, client.generation, client.instance)

    @rule(number=st.integers(0, CLIENTS - 1))
    def leave_group(self, number: int) -> None:
        client = self.clients[number]
        self.desk.leave(Identity(member_id=client.member_id, instance_id=client.instance))

    @rule(number=st.integers(0, CLIENTS - 1), lag=st.integers(0, 2))
    def commit_offset(self, number: int, lag: int) -> None:
        client = self.clients[number]
        generation = client.generation - lag
        group = self.desk.machine.group(GROUP)
        answer = self.desk.commit(1, client.member_id, generation, instance=client.instance)
        if isinstance(answer, Committed) and generation >= 0:
            assert isinstance(group, ClassicGroup)
            assert generation == group.generation.number, "an old generation has committed"
            assert group.generation.member(client.member_id) is not None

    @rule(numbers=st.sets(st.integers(0, CLIENTS - 1)), turn=st.integers(0, CLIENTS - 1))
    def clients_behave_normally(self, numbers: set[int], turn: int) -> None:
        """Some clients behave as they should, and so the group settles."""
        for _ in range(ROUNDS):
            for number in sorted(numbers):
                client = self.clients[number]
                error = self.desk.heartbeat(client.member_id, client.generation, client.instance)
                if error is not None and client.join is None:
                    self.join_group(number, client.protocols, is_fresh=False)
                    self.answers_agree()
            self.desk.pass_ms(150)
            self.answers_agree()
            for number in sorted(numbers):
                if self.clients[number].join is None and self.clients[number].sync is None:
                    self.sync_group(number, turn)
            self.answers_agree()

    @rule(ms=st.sampled_from([100, 1_000, 5_000]))
    def wait_a_while(self, ms: int) -> None:
        self.desk.pass_ms(ms)

    @rule()
    def restart(self) -> None:
        self.desk.restart()
        for client in self.clients:  # their connections are gone, and with them their requests
            client.join = client.sync = None
        self.all_waits = []

    @precondition(lambda self: len(self.all_waits) > 3)
    @rule()
    def no_request_waits_forever(self) -> None:
        for _ in range(WAIT_MS_MAX // 1_000):
            self.desk.now_ms += 1_000
            self.desk.carry_out(self.desk.machine.tick(self.desk.now))
        assert all(waiting.answer is not None for waiting in self.all_waits)
        self.all_waits = []

    @invariant()
    def answers_agree(self) -> None:
        for client in self.clients:
            self._hear_join(client)
            self._hear_sync(client)

    @invariant()
    def what_is_durable_follows_from_the_records(self) -> None:
        again = Groups(self.desk.config)
        for record in self.desk.written:
            again.apply(record)
        assert sorted(again.records()) == sorted(self.desk.machine.records())

    @invariant()
    def generations_only_grow_while_the_group_lives(self) -> None:
        group = self.desk.machine.group(GROUP)
        if group is not None:
            assert isinstance(group, ClassicGroup)
            assert group.generation.number >= self.highest
            self.highest = group.generation.number

    def _hear_join(self, client: Client) -> None:
        waiting, answer = client.join, client.join.answer if client.join else None
        if waiting is None or answer is None:
            return
        client.join = None
        match answer:
            case MemberIdRequired():
                client.member_id = answer.member_id
            case Joined():
                client.member_id, client.generation = answer.member_id, answer.generation
                client.leads = answer.leader == answer.member_id and not answer.skip_assignment
                client.others = tuple(name for name, _, _ in answer.members)
                if client.leads:
                    assert client.member_id in client.others
            case _:
                client.member_id = ""

    def _hear_sync(self, client: Client) -> None:
        waiting, answer = client.sync, client.sync.answer if client.sync else None
        if waiting is None or answer is None:
            return
        client.sync = None
        if isinstance(answer, Synced):
            for partition in answer.assignment:
                # An instance keeps its place under another id; it is still one reader.
                owner = self.owners.setdefault((client.generation, partition), client.name)
                assert owner == client.name, "two readers of one partition in one generation"


GroupModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestGroups = GroupModel.TestCase
