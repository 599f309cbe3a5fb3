"""Plays a scenario: commands in, the exact trace out. `docs/how-to/write-a-scenario.md` lists them.

# why this scenario exists
command arguments
----
the expected trace

Several commands may be above one `----`. A blank line ends the trace.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kafkaesque.config import RaftConfig
from kafkaesque.entry import Entry, HardState, TermOpened, Voters
from kafkaesque.errors import RaftError
from kafkaesque.raft.messages import CoreMessage
from kafkaesque.types import NodeId
from tests.raft.memory_log import MemoryLog, log_start
from tests.scenarios import words
from tests.scenarios.cluster import Cluster, Node

RULE = "----"
SETTLE_STEPS_MAX = 2_000
"""A cluster that still exchanges messages after so many will never stop."""

TICKS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Comments, commands and the expected trace."""

    comments: tuple[str, ...]
    commands: tuple[str, ...]
    trace: str

    def text(self, trace: str) -> str:
        """Return the block as it is in a file, with this trace."""
        if not self.commands:
            return "\n".join(self.comments) + "\n"
        head = [*self.comments, *self.commands, RULE]
        return "\n".join(head) + "\n" + trace


def parse(text: str) -> list[Block]:
    """Split a file into its blocks; blank lines separate them."""
    blocks = []
    for part in text.split("\n\n"):
        head, rule, trace = part.strip("\n").partition(f"\n{RULE}")
        lines = head.splitlines()
        commands = tuple(line for line in lines if line and not line.startswith("#"))
        assert bool(commands) == bool(rule), f"commands and their {RULE} belong together: {part}"
        comments = tuple(line for line in lines if line.startswith("#"))
        body = trace.strip("\n")
        blocks.append(
            Block(comments=comments, commands=commands, trace=body + "\n" if body else "")
        )
    return [block for block in blocks if block.comments or block.commands]


def play(text: str) -> str:
    """Return the whole file with the actual traces of its commands."""
    scenario = Scenario()
    parts = []
    for block in parse(text):
        trace = "".join(f"{line}\n" for command in block.commands for line in scenario.run(command))
        parts.append(block.text(trace))
    return "\n".join(parts)


class Scenario:
    """One cluster and the commands for it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._is_quiet = False
        self._config = RaftConfig()
        self._cluster = Cluster(self._trace)
        self._commands: dict[str, Callable[[list[str]], None]] = {
            name.removeprefix("do_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("do_")
        }

    def run(self, command: str) -> list[str]:
        """Carry out one command and return its trace."""
        name, *arguments = command.split()
        assert name in self._commands, f"no such command: {command}"
        self._lines = []
        self._commands[name](arguments)
        if self._cluster.is_auto:
            self._settle()
        return self._lines

    # ── the cluster ──────────────────────────────────────────────────────────────────────────

    def do_cluster(self, arguments: list[str]) -> None:
        """`cluster 1 2 3 [append_bytes_max=10 …]`: nodes with empty logs that vote together."""
        settings = dict(word.split("=") for word in arguments if "=" in word)
        self._config = replace(self._config, **{k: int(v) for k, v in settings.items()})
        members = sorted(int(word) for word in arguments if "=" not in word)
        for node in members:
            self._add(node, MemoryLog(log_start(Voters(voters=tuple(members)))))

    def do_node(self, arguments: list[str]) -> None:
        """`node 4`: a new node that belongs to no group yet."""
        self._add(int(arguments[0]), MemoryLog(log_start(Voters(voters=()))))

    def do_log(self, arguments: list[str]) -> None:
        """`log 2 1x3 4x2 [term=5]`: 3 entries of term 1, 2 of 4; each term begins with its mark."""
        node = self._node(arguments[0])
        entries: list[Entry] = []
        last = arguments[-1].removeprefix("term=")
        for word in [word for word in arguments[1:] if "x" in word]:
            term, count = (int(part) for part in word.split("x"))
            for number in range(count):
                end = len(entries)
                payload = f"{term}{chr(96 + number)}".encode() if number else TermOpened()
                entries.append(Entry(end, end + 1, term, payload))
        node.log = MemoryLog(node.log.start, entries)
        node.saved = HardState(term=int(last) if "x" not in last else entries[-1].term, vote=None)
        node.start()

    def do_auto(self, arguments: list[str]) -> None:
        """`auto on|quiet|off`: deliver and sync by itself until nothing moves."""
        self._cluster.is_auto = arguments[0] != "off"
        self._is_quiet = arguments[0] == "quiet"
        if self._cluster.is_auto:
            for node in self._up():
                self._cluster.sync(node, node.log.end)

    def do_state(self, arguments: list[str]) -> None:
        """`state [2 3]`: one line for each node."""
        for node in self._cluster.nodes.values():
            if not arguments or str(node.node) in arguments:
                self._lines.append(_state(node))

    def do_pending(self, arguments: list[str]) -> None:
        """`pending [1->2]`: what is under way."""
        self._lines += [words.message(message) for message in self._on_link(arguments)]

    # ── time and clients ─────────────────────────────────────────────────────────────────────

    def do_tick(self, arguments: list[str]) -> None:
        """`tick 1 2 x10`: ten ticks pass at both nodes."""
        nodes = [self._node(word) for word in arguments if not word.startswith("x")]
        count = next((int(word[1:]) for word in arguments if word.startswith("x")), 1)
        assert count <= TICKS_MAX
        for _ in range(count):
            for node in nodes:
                self._tick(node)
            if self._cluster.is_auto:
                self._settle()

    def do_campaign(self, arguments: list[str]) -> None:
        """`campaign 1`: time passes at node 1 until it asks for votes."""
        node = self._node(arguments[0])
        for _ in range(TICKS_MAX):
            before = node.raft.role, len(self._cluster.pending)
            self._tick(node)
            if before != (node.raft.role, len(self._cluster.pending)):
                return
        self._trace(f"  {node.node} does not campaign")

    def do_propose(self, arguments: list[str]) -> None:
        """`propose 1 a [3]`: a batch, of three records, for the leader."""
        count = int(arguments[2]) if len(arguments) > 2 else 1
        node = self._node(arguments[0])
        self._ask(node, lambda: node.raft.propose(arguments[1].encode(), count))

    def do_transfer(self, arguments: list[str]) -> None:
        """`transfer 1 2`: leader 1 hands over to 2."""
        node = self._node(arguments[0])
        self._ask(node, lambda: node.raft.transfer(int(arguments[1])))

    def do_voters(self, arguments: list[str]) -> None:
        """`voters 1 add 4`, `voters 1 remove 2 [add 4]`: change who votes, through leader 1."""
        node = self._node(arguments[0])
        now = node.raft.voters
        voters = _changed(now.voters, arguments[1:])
        learners = tuple(one for one in now.learners if one not in voters)
        change = Voters(voters=voters, learners=learners)
        self._ask(node, lambda: node.raft.change_voters(change))

    def do_learner(self, arguments: list[str]) -> None:
        """`learner 1 add 4`: change who learns without a vote."""
        node = self._node(arguments[0])
        now = node.raft.voters
        change = Voters(voters=now.voters, learners=_changed(now.learners, arguments[1:]))
        self._ask(node, lambda: node.raft.change_voters(change))

    # ── the network ──────────────────────────────────────────────────────────────────────────

    def do_deliver(self, arguments: list[str]) -> None:
        """`deliver [1->2 [drop|duplicate]]`: what is under way now arrives; answers wait."""
        how = arguments[1] if len(arguments) > 1 else ""
        for message in self._on_link(arguments):
            if how != "duplicate":
                self._cluster.pending.remove(message)
            if how == "drop":
                self._trace(f"{words.message(message)} (lost)")
            else:
                self._cluster.deliver(message)

    def do_delay(self, arguments: list[str]) -> None:
        """`delay 1->2`: keep back what is under way on a link."""
        for message in self._on_link(arguments):
            self._cluster.pending.remove(message)
            self._cluster.delayed.append(message)
            self._trace(f"{words.message(message)} (delayed)")

    def do_release(self, _: list[str]) -> None:
        """`release`: what was delayed is under way again."""
        self._cluster.pending += self._cluster.delayed
        self._cluster.delayed = []

    def do_cut(self, arguments: list[str]) -> None:
        """`cut 1 2`: nothing passes between 1 and 2; `cut 1`: between 1 and everyone."""
        self._cluster.cuts |= self._links(arguments)

    def do_heal(self, arguments: list[str]) -> None:
        """`heal [1 2]`: all links work again, or those between 1 and 2."""
        self._cluster.cuts -= self._links(arguments) if arguments else self._cluster.cuts

    # ── the disks ────────────────────────────────────────────────────────────────────────────

    def do_stable(self, arguments: list[str]) -> None:
        """`stable 2 [5]`: the disk of 2 reports hard state and log, up to 5, as durable."""
        node = self._node(arguments[0])
        self._cluster.sync(node, int(arguments[1]) if len(arguments) > 1 else node.log.end)

    def do_stop(self, arguments: list[str]) -> None:
        """`stop 2`: the power fails; only what was durable is left."""
        self._node(arguments[0]).stop()

    def do_start(self, arguments: list[str]) -> None:
        """`start 2`: the power comes back."""
        node = self._node(arguments[0])
        node.start()
        self._cluster.carry_out(node)

    def do_crash(self, arguments: list[str]) -> None:
        """`crash 2 [keep 5]`: stop and start; what is before 5 had reached the disk by chance."""
        self._node(arguments[0]).stop(int(arguments[2]) if len(arguments) > 1 else 0)
        self.do_start(arguments[:1])

    def do_recovering(self, arguments: list[str]) -> None:
        """`recovering 3`: node 3 restarts, finds its synced log damaged and leaves its term."""
        node = self._node(arguments[0])
        voters = node.log.voters()[-1][1]
        node.stop()
        node.log = MemoryLog(log_start(voters))
        node.is_recovering = True
        node.saved = HardState(term=node.saved.term + 1, vote=None)
        self.do_start(arguments)

    def do_forgets(self, arguments: list[str]) -> None:
        """`forgets 3 keep 2`: power is lost under a lazy policy; node 3 has [0, 2) left."""
        node = self._node(arguments[0])
        keep = int(arguments[2])
        node.stop()
        held = [entry for entry in node.log.held if entry.end <= keep]
        node.log = MemoryLog(node.log.start, held)
        node.is_recovering = True
        node.saved = HardState(term=node.saved.term + 1, vote=None)
        self.do_start(arguments[:1])

    def do_loses(self, arguments: list[str]) -> None:
        """`loses 3 keep 2`: node 3 restarts with [0, 2) and does not notice; its disk has lied."""
        node = self._node(arguments[0])
        keep = int(arguments[2])
        node.stop()
        held = [entry for entry in node.log.held if entry.end <= keep]
        node.log = MemoryLog(node.log.start, held)
        self.do_start(arguments[:1])

    def do_compact(self, arguments: list[str]) -> None:
        """`compact 1 2 4`: the batches in [2, 4) of node 1 were superseded and are gone."""
        node, first, end = (int(word) for word in arguments)
        self._cluster.compacted(self._cluster.nodes[node], first, end)

    def do_trim(self, arguments: list[str]) -> None:
        """`trim 1 5`: the log of 1 begins at index 5."""
        node = self._node(arguments[0])
        assert int(arguments[1]) <= node.raft.commit, "only committed entries are trimmed"
        node.log.trim(int(arguments[1]))
        node.log.sync(node.log.end)

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _trace(self, line: str) -> None:
        if not self._is_quiet:
            self._lines.append(line)

    def _add(self, node: NodeId, log: MemoryLog) -> None:
        self._cluster.carry_out(self._cluster.add(node, self._config, log))

    def _node(self, word: str) -> Node:
        return self._cluster.nodes[int(word)]

    def _up(self) -> list[Node]:
        return [node for node in self._cluster.nodes.values() if node.is_up]

    def _links(self, arguments: list[str]) -> set[tuple[NodeId, NodeId]]:
        first = int(arguments[0])
        others = [int(word) for word in arguments[1:]] or list(self._cluster.nodes)
        links = {(first, other) for other in others if other != first}
        return links | {(target, source) for source, target in links}

    def _tick(self, node: Node) -> None:
        node.raft.tick()
        self._cluster.carry_out(node)

    def _ask(self, node: Node, request: Callable[[], object]) -> None:
        try:
            request()
        except RaftError as error:
            self._lines.append(f"  {node.node} refuses, {type(error).__name__}: {error}")
        self._cluster.carry_out(node)

    def _on_link(self, arguments: list[str]) -> list[CoreMessage]:
        link = arguments[0] if arguments else ""
        pending = self._cluster.pending
        return [m for m in pending if link in ("", f"{m.source}->{m.target}")]

    def _settle(self) -> None:
        for _ in range(SETTLE_STEPS_MAX):
            if not self._cluster.pending:
                return
            self._cluster.deliver(self._cluster.pending.pop(0))
        raise AssertionError("the cluster does not come to rest")


def _changed(nodes: tuple[NodeId, ...], words: list[str]) -> tuple[NodeId, ...]:
    """Return the nodes after `add 4` or `remove 2`, which may follow each other."""
    changed = set(nodes)
    for verb, node in zip(words[::2], words[1::2], strict=True):
        assert verb in ("add", "remove")
        changed ^= {int(node)}
    return tuple(sorted(changed))


def _state(node: Node) -> str:
    raft = node.raft
    role = raft.role.name.lower().replace("_", "-") if node.is_up else "down"
    recovering = " recovering" if raft.is_recovering else ""
    may_serve = raft.leadership is not None and raft.leadership.may_serve
    leads = " serves" if may_serve and node.is_up else ""
    return (
        f"{node.node} {role}{leads}{recovering} t{raft.term} vote={raft.vote or '-'}"
        f" commit={raft.commit} stable={node.log.stable} end={raft.end}"
        f" of {words.group(raft.voters)} | {words.log(node.log.start, node.log.held)}"
    )
