"""Keeps a leader's machine in step with a replica's log.

The leader applies a record when it appends it and replies when it is committed, so the next
decision already sees it. A new leader rebuilds the machine from the newest snapshot and the log
behind it, in slices; until then it takes no commands. A replica that stops leading drops the
machine, because it may hold what will never be committed.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from kafkaesque.broker.machine_hosting.machine_saver import Live, MachineSaver, trim_covered
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.machine_hosting.replay import Replay
from kafkaesque.broker.replication.failures import can_be_mended
from kafkaesque.broker.replication.watermark import Done
from kafkaesque.callbacks import ignore
from kafkaesque.errors import LogError, NotLeader
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.slices import Sliced

M = TypeVar("M", bound=Machine)


class MachineHost(Generic[M]):
    """One machine on one replica; `on_ready` is called when it takes commands.

    Another replica leads a damaged log until it is mended; a damaged only copy is led without a
    machine. `on_lost`, if set, is called when the machine is dropped, so that no caller keeps
    waiting for it. `live` returns the committed state where this broker keeps a copy of it.
    """

    def __init__(
        self,
        site: MachineSite,
        make: Callable[[], M],
        on_ready: Callable[[M], None],
        live: Callable[[], Live | None] | None = None,
    ) -> None:
        self.on_lost: Callable[[M], None] = ignore
        self._site = site
        self._replica = replica = site.replica
        self._make = make
        self._on_ready = on_ready
        self._machine: M | None = None
        self._rebuilding: Sliced[None] | None = None
        self._saver = MachineSaver(site, make, live or self._committed)
        replica.on_serving.append(self._on_serving)
        if replica.is_serving:
            self._on_serving()

    @property
    def machine(self) -> M:
        """The machine; raises NotLeader while it is not hosted here."""
        if self._machine is None or not self._replica.is_serving:
            raise NotLeader(self._replica.raft.leader)
        return self._machine

    @property
    def is_hosted(self) -> bool:
        """Whether the machine takes commands here and now."""
        return self._machine is not None and self._replica.is_serving

    @property
    def is_loading(self) -> bool:
        """Whether the machine will soon take commands here."""
        return self._rebuilding is not None and self._replica.is_serving

    @property
    def may_decide(self) -> bool:
        """Whether a decision made now can be written, except on a full disk.

        The machine must not decide during a leadership transfer. It regards its decisions as done:
        it drops timeouts and replies to waiting callers. If the transfer fails this broker keeps
        leading with the same machine, and the log has none of it.
        """
        return self._machine is not None and self._replica.may_propose

    def write(self, records: Sequence[MachineRecord], done: Done) -> None:
        """Append and apply the machine's decision; `done` gets its outcome."""
        machine = self.machine
        now_ms = self._site.clock.now_ms()
        batch = build_batch(
            [
                Record(offset=place, timestamp_ms=now_ms, key=key, value=value)
                for place, (key, value) in enumerate(records)
            ]
        )
        self._replica.propose(batch, done)
        for record in records:
            machine.apply(record)

    def rebuild(self) -> None:
        """Rebuild the machine from the log: its last decision could not be written."""
        self._on_serving()

    def close(self) -> None:
        """Stop hosting: the partition has left this broker."""
        self._drop()
        self._saver.close()

    def _drop(self) -> None:
        """Drop the machine, if it is here."""
        if self._rebuilding is not None:
            self._rebuilding.close()
            self._rebuilding = None
        lost, self._machine = self._machine, None
        if lost is not None:
            self.on_lost(lost)

    def when_committed(self, done: Done) -> None:
        """Call `done` once all that the machine knows now is committed.

        An answer made from the state must wait for this: otherwise it may report what never
        happens.
        """
        self._replica.when_committed(done)

    def tick(self) -> None:
        """Save the state if that is due; also notices a replica that stopped silently."""
        if self._machine is not None and not self._replica.is_serving:
            self._on_serving()
        self._saver.tick()
        trim_covered(self._replica, self._site.snapshots)

    def stop(self) -> None:
        """Save the state before a clean stop, so that the next start replays nothing."""
        live = self._committed()
        if live is not None:
            self._site.snapshots.write(*live)

    def _committed(self) -> Live | None:
        """Return the state, if all of it is committed."""
        if self.is_hosted and self._replica.raft.commit >= self._replica.log.end:
            return self._replica.log.end_offset, self.machine.records()
        return None

    def _on_serving(self) -> None:
        self._drop()
        if self._replica.is_serving:
            self._rebuilding = self._rebuild()
            self._site.slices.begin(self._rebuilding)

    def _rebuild(self) -> Sliced[None]:
        replay = Replay(self._make(), self._replica.log, self._site.snapshots)
        try:
            yield from replay.load()
            yield from replay.advance(lambda: self._replica.log.end)
        except LogError as error:
            self._rebuilding = None
            if can_be_mended(error):
                self._replica.damaged(error)  # another leads; without others nothing is hosted
            else:  # a later version's log, or a failed disk
                self._site.failed(error)
            return
        self._rebuilding = None
        self._machine = replay.machine
        self._on_ready(replay.machine)
