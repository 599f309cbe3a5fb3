"""Planted bugs in share groups, four of which a prototype really had."""

from tests.mutants.mutation import Mutant

_ROOM = "kafkaesque.machines.queues"
_PARTITION = f"{_ROOM}.share_partition:SharePartition"
_LOCKS = f"{_ROOM}.share_locks:ShareLocks"
_STATES = f"{_ROOM}.share_states:ShareStates"
_VOID = f"{_ROOM}.void_state:without_offsets_from"

QUEUE_MUTANTS = (
    Mutant(
        name="a lock gets lost when its first record is locked again",
        target=f"{_ROOM}.share_locks:_Chunk.put",
        old="if self.heads & ((1 << after) - 1) and (around := self.at(after)).left >> after:",
        new="if False:",
    ),
    Mutant(
        name="a range settles the whole of each lock that it touches",
        target=f"{_ROOM}.share_locks:_Chunk.parts",
        old="found.append((lock, part))",
        new="found.append((lock, lock.left))",
    ),
    Mutant(
        name="a range may contain what is no longer held",
        target=f"{_PARTITION}.settle",
        old="self._locks.find(member, chunk, bits, now_ms)",
        new="self._locks.find(member, chunk, bits & self._locks.get(chunk), now_ms)",
    ),
    Mutant(
        name="a chunk that is done stays when the start leaves it",
        target=f"{_ROOM}.settled_offsets:SettledOffsets.done_until",
        old="del chunks[chunk]",
        new="pass",
    ),
    Mutant(
        name="what the log has lost is looked for again and again",
        target=f"{_PARTITION}.log_starts_at",
        old="self._released.remove_below(offset)",
        new="pass",
    ),
    Mutant(
        name="a last attempt is handed out among others",
        target=f"{_PARTITION}._take_released",
        old="if run.deliveries + 1 >= self.limits.delivery_max:",
        new="if False:",
    ),
    Mutant(
        name="a record is delivered once more than the limit says",
        target=f"{_PARTITION}._release",
        old="if lock.count >= self.limits.delivery_max:",
        new="if lock.count > self.limits.delivery_max:",
    ),
    Mutant(
        name="deliveries that ended are not counted",
        target=f"{_PARTITION}._release",
        old="self._settled.count(lock.chunk, bits, lock.count)",
        new="pass",
    ),
    Mutant(
        name="a lock that ran out still settles",
        target=f"{_LOCKS}.find",
        old="if lock.member != member or lock.due_ms <= now_ms:",
        new="if lock.member != member:",
    ),
    Mutant(
        name="what was released during a read counts as missing",
        target=f"{_PARTITION}.take",
        old="at = self.next_available() if read_from is None else read_from",
        new="at = self.next_available()",
    ),
    Mutant(
        name="the window is ignored",
        target=f"{_PARTITION}._take_new",
        old="count = min(taking.room, last - self.next + 1, self._window_room())",
        new="count = min(taking.room, last - self.next + 1)",
    ),
    Mutant(
        name="renewing a part of a lock renews all of it",
        target=f"{_LOCKS}.renew",
        old="if bits == lock.left:",
        new="if True:",
    ),
    Mutant(
        name="locks are out of order after the lock time was shortened",
        target=f"{_LOCKS}._schedule",
        old="max(due_ms, self._due_ms_last)",
        new="due_ms",
    ),
    Mutant(
        name="chunks below the start stay in the log",
        target=f"{_ROOM}.share_saved:SavedState.changes",
        old="chunks.update(chunk for chunk in saved if chunk < edge)",
        new="pass",
    ),
    Mutant(
        name="a start that was set leaves counts in the log",
        target=f"{_PARTITION}.set_start",
        old="self._saved.doubt()",
        new="pass",
    ),
    Mutant(
        name="what was settled at offsets that are used again holds",
        target=f"{_STATES}.adopt",
        old="in without_offsets_from(command.first, state.records()):",
        new="in ():",
    ),
    Mutant(
        name="a start above the end of the log holds",
        target=_VOID,
        old="as start if start.start > end:",
        new="as start if False:",
    ),
    Mutant(
        name="delivery counts of offsets that are used again hold",
        target=_VOID,
        old="if runs != counts.runs:",
        new="if False:",
    ),
    Mutant(
        name="a leader that adopts twice loses what it wrote between",
        target=f"{_STATES}.adopt",
        old="adopted.term < command.term:",
        new="adopted.term <= command.term:",
    ),
    Mutant(
        name="a leader of an older term adopts",
        target=f"{_STATES}.adopt",
        old="if adopted is not None and asked < (adopted.term, adopted.serial):",
        new="if False:",
    ),
    Mutant(
        name="a leader that was replaced writes on",
        target=f"{_STATES}.write",
        old="asked != (adopted.term, adopted.serial):",
        new="asked > (adopted.term, adopted.serial):",
    ),
    Mutant(
        name="a leader that does not know of a new start writes on",
        target=f"{_STATES}.write",
        old="if generation != _generation(known):",
        new="if generation > _generation(known):",
    ),
    Mutant(
        name="an old write brings a deleted group back in part",
        target=f"{_STATES}.write",
        old="if known is None and group not in command.opens:",
        new="if False:",
    ),
    Mutant(
        name="a machine that is full refuses to shrink",
        target=f"{_STATES}._check_room",
        old="if more > 0 and",
        new="if",
    ),
)
