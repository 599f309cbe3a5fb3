"""Members of a consumer group whose coordinator assigns, on a simulated cluster (KIP-848).

They join, leave, die, pause for longer than their session lasts, and lose answers, while
coordinators are killed and cut off. Invariants, whichever broker coordinates:

- in one epoch of the group a partition is assigned to one member only;
- no member commits for a partition that another member was assigned in a later epoch;
- without faults every partition of the topic gets one reader, and all are in one epoch.
"""

import random
from collections.abc import Callable
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.callbacks import ignore
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.groups.consumer_commands import (
    JOINING,
    LEAVING,
    ConsumerHeartbeat,
    ConsumerTold,
    Place,
    TopicsKnown,
)
from kafkaesque.machines.groups.group_commands import Answer, Commit, Committed, Identity
from kafkaesque.machines.groups.group_errors import FencedMember, UnknownMember
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation

GROUP = "sharers"
SHELF = "shelf"
PARTITIONS = 5
SESSION_MS = 700
_PAUSE = 40
_ANSWER_MS_MAX = 250
_REBALANCE_MS = 1_500
_DRAWN = (0, 0, 3, 4)


class GivenOut:
    """All assignments that any coordinator ever sent to members."""

    def __init__(self) -> None:
        self._givens: dict[tuple[Place, int], str] = {}
        self._newest: dict[Place, tuple[int, str]] = {}

    def told(self, member_id: str, told: ConsumerTold) -> None:
        """Record a member's assignment; raises Violation if another has the same partition."""
        for place in told.assigned or ():
            holder = self._givens.setdefault((place, told.epoch), member_id)
            if holder != member_id:
                message = f"given to {holder} and to {member_id} in epoch {told.epoch}"
                raise Violation(f"partition {place[1]} was {message}")
            self._newest[place] = max(self._newest.get(place, (0, "")), (told.epoch, member_id))

    def is_over(self, member_id: str, epoch: int, place: Place) -> bool:
        """Return whether another member was assigned a partition in a later epoch."""
        newest, holder = self._newest.get(place, (0, member_id))
        return newest > epoch and holder != member_id


class GroupMember:
    """One consumer: what it believes, and what it reads."""

    def __init__(self, world: BrokerWorld, chance: random.Random, name: str, out: GivenOut) -> None:
        self.epoch = JOINING
        self.owned: frozenset[Place] = frozenset()
        self.is_stopped = False
        self.is_steady = False
        """Whether it stays and sends heartbeats, as in the quiet phase."""
        self._world = world
        self._chance = chance
        self._name = name
        self._out = out
        self._births = 0
        self._told: frozenset[Place] = frozenset()
        self._said: frozenset[Place] | None = None
        """The partitions that it last reported; None if it must report everything."""
        self._asked = 0
        """The number of the heartbeat that it waits for; answers to others are too late."""
        self._is_waiting = False

    @property
    def member_id(self) -> str:
        """The id of its current life."""
        return f"{self._name}.{self._births}"

    @property
    def is_settled(self) -> bool:
        """Whether it reads what it was assigned, and the coordinator knows it."""
        return self.epoch > JOINING and self.owned == self._told == self._said

    def go_on(self) -> None:
        """Do the next thing, and schedule the one after."""
        if self.is_stopped:
            return
        pause = 1 + self._chance.randrange(_PAUSE)
        fate = 1.0 if self.is_steady else self._chance.random()
        if fate < 0.005:
            self._forget()
            self._births += 1  # it dies, and another one takes its place
        elif fate < 0.01:
            pause += self._chance.randrange(3 * SESSION_MS)
        elif fate < 0.015:
            self._beat(LEAVING)
            self._forget()
            self._births += 1
        elif fate < 0.3 and self.owned:
            self._commit(self._chance.choice(sorted(self.owned)))
        elif not self._is_waiting:
            if fate > 0.4:
                self.owned = self._told
            self._beat(self.epoch)
        self._world.schedule(pause, self.go_on)

    def _forget(self) -> None:
        self.epoch, self._told, self.owned = JOINING, frozenset(), frozenset()
        self._said, self._is_waiting = None, False
        self._asked += 1

    # ── heartbeats ───────────────────────────────────────────────────────────────────────────

    def _beat(self, epoch: int) -> None:
        self._asked += 1
        number, member_id, owned = self._asked, self.member_id, self.owned
        says_all = self._said is None
        must_say = says_all or owned != self._said
        self._is_waiting = True

        def ask(broker: Broker) -> None:
            catalog = broker.committed_catalog.machine
            beat = ConsumerHeartbeat(
                group=GROUP,
                member_id=member_id,
                epoch=epoch,
                topics=TopicsKnown(mark=catalog.topics_mark, topics=catalog.topics),
                rebalance_timeout_ms=_REBALANCE_MS if says_all else None,
                names=frozenset({SHELF}) if says_all else None,
                owned=owned if must_say else None,
            )
            broker.coordinators.of(GROUP).ask(beat, reply)

        def reply(answer: Answer) -> None:
            if isinstance(answer, ConsumerTold):
                self._out.told(member_id, answer)
                self._world.count("members told")
            if number == self._asked:
                self._hear(answer, owned)

        self._at_coordinator(ask)
        self._world.schedule(_ANSWER_MS_MAX, partial(self._give_up, number))

    def _give_up(self, number: int) -> None:
        if self._is_waiting and number == self._asked:
            self._is_waiting, self._said = False, None
            self._asked += 1

    def _hear(self, answer: Answer, said: frozenset[Place]) -> None:
        self._is_waiting = False
        match answer:
            case ConsumerTold() if answer.epoch >= JOINING:
                self.epoch, self._said = answer.epoch, said
                if answer.assigned is not None:
                    self._told = frozenset(answer.assigned)
            case FencedMember() | UnknownMember():
                self._world.count("members fenced")
                self._forget()
            case _:
                self._said = None

    # ── commits ──────────────────────────────────────────────────────────────────────────────

    def _commit(self, place: Place) -> None:
        member_id, epoch = self.member_id, self.epoch

        def ask(broker: Broker) -> None:
            command = Commit(
                group=GROUP,
                generation=epoch,
                member=Identity(member_id=member_id),
                offsets=((place, 1, -1, ""),),
            )
            is_over = self._out.is_over(member_id, epoch, place)

            def reply(answer: Answer) -> None:
                self._world.count("members' commits" if isinstance(answer, Committed) else "late")
                if is_over and isinstance(answer, Committed):
                    raise Violation(f"{member_id} has committed in epoch {epoch}, which is over")

            broker.coordinators.of(GROUP).ask(command, reply)

        self._at_coordinator(ask)

    def _at_coordinator(self, ask: Callable[[Broker], None]) -> None:
        able = self._world.able()
        broker = self._chance.choice(able).broker if able else None
        if broker is None:
            return
        node = broker.coordinator_of(GROUP)
        if node is None:
            broker.coordinators.when_ready(ignore)
            return
        self._world.schedule(1 + self._chance.randrange(20), partial(self._try, node, ask))

    def _try(self, node: int, ask: Callable[[Broker], None]) -> None:
        machine = self._world.nodes[node]
        if machine in self._world.able():
            try:
                self._world.ask_broker(machine, ask)
            except KafkaesqueError as error:
                self._world.count(f"members refused: {type(error).__name__}")


class GroupMembers:
    """All members of the group; they start when their topic exists."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._chance = random.Random(f"members of {world.seed}")
        wanted = world.settings.members
        count = self._chance.choice(_DRAWN) if wanted is None else wanted
        out = GivenOut()
        self._all = [GroupMember(world, self._chance, f"m{n}", out) for n in range(count)]
        self._is_stopped = False

    def begin(self) -> None:
        """Start to send requests."""
        if self._all:
            self._world.schedule(1, self._make_topic)
        for one in self._all:
            self._world.schedule(1 + self._chance.randrange(_PAUSE), one.go_on)

    def _make_topic(self) -> None:
        able = self._world.able()
        if self._is_stopped:
            return
        self._world.schedule(1 + self._chance.randrange(_PAUSE), self._make_topic)
        machine = self._chance.choice(able) if able else None
        if machine is None or machine.broker is None or SHELF in machine.broker.catalog.topics:
            return

        def ask(broker: Broker) -> None:
            try:
                broker.create_topic(SHELF, PARTITIONS, {}, ignore)
            except KafkaesqueError:
                self._world.count("shelf refused")

        self._world.ask_broker(machine, ask)

    def calm_down(self) -> None:
        """Make all members stay and send heartbeats."""
        for one in self._all:
            one.is_steady = True

    def are_settled(self) -> bool:
        """Return whether every partition has one reader, and all of them are in one epoch."""
        if not self._all:
            return True
        read = sorted(index for one in self._all for _, index in one.owned)
        epochs = {one.epoch for one in self._all}
        is_shared = read == list(range(PARTITIONS)) and len(epochs) == 1
        return is_shared and all(one.is_settled for one in self._all)

    def stop(self) -> None:
        """Stop all members."""
        self._is_stopped = True
        for one in self._all:
            one.is_stopped = True
