"""The planted bugs: what each breaks, in the words of the rule that it breaks."""

from tests.mutants.mutation import Mutant

_RAFT = "kafkaesque.raft.raft:Raft"
_FOLLOWER = "kafkaesque.raft.follower:Following"
_LEADER = "kafkaesque.raft.leadership:Leadership"
_LOG = "kafkaesque.log.partition_log:PartitionLog"
_VISIBLE = "kafkaesque.log.visible_log:VisibleLog"
_JOURNAL = "kafkaesque.log.journal:Journal"
_STABILITY = "kafkaesque.log.stability:Stability"
_SEGMENTS = "kafkaesque.log.segments:Segments"
_KEEPER = "kafkaesque.broker.partition.producer_keeper:ProducerKeeper"
_RECOVERY = "kafkaesque.log.segments_recovery"

MUTANTS = (
    # ── elections ────────────────────────────────────────────────────────────────────────────
    Mutant(
        name="a replica votes twice in a term",
        target=f"{_RAFT}._answer_vote",
        old="self.vote in (None, request.source) and self.leader is None",
        new="True",
    ),
    Mutant(
        name="a vote goes to a candidate whose log is behind",
        target=f"{_RAFT}._answer_vote",
        old="is_current = (request.last_term, request.end) >= (self._last_term(), self.end)",
        new="is_current = True",
    ),
    Mutant(
        name="the longer log wins, whatever its last term",
        target=f"{_RAFT}._answer_vote",
        old="(request.last_term, request.end) >= (self._last_term(), self.end)",
        new="request.end >= self.end",
    ),
    Mutant(
        name="messages do not wait for the hard state",
        target="kafkaesque.broker.replication.replica:Replica._dispatch",
        old="if self._unsaved_states:",
        new="if False:",
    ),
    Mutant(
        name="half of the voters is a majority",
        target="kafkaesque.raft.quorum:majority",
        old="count // 2 + 1",
        new="max(1, count // 2)",
    ),
    Mutant(
        name="a replica that lost synced data still votes",
        target=f"{_RAFT}._answer_vote",
        old="and not self.is_recovering",
        new="",
    ),
    # ── replication ──────────────────────────────────────────────────────────────────────────
    Mutant(
        name="a follower acknowledges what it has not synced",
        target=f"{_FOLLOWER}.accept",
        old="match=min(raft.stable, self._matched)",
        new="match=self._matched",
    ),
    Mutant(
        name="a leader counts itself before it has synced",
        target=f"{_LEADER}._matches",
        old="raft.stable if node",
        new="raft.end if node",
    ),
    Mutant(
        name="a leader commits an old term by counting",
        target=f"{_LEADER}.try_commit",
        old="or agreed <= self.opened_at",
        new="",
    ),
    Mutant(
        name="a late append cuts a good suffix",
        target=f"{_FOLLOWER}._take_entries",
        old="entry.first < raft.end and raft.log.term_at(entry.first) == entry.term",
        new="False",
    ),
    Mutant(
        name="a follower commits beyond the verified prefix of its log",
        target=f"{_FOLLOWER}._take_commit",
        old="min(commit, self._matched)",
        new="min(commit, self._raft.end)",
    ),
    Mutant(
        name="an append is accepted without checking the preceding entry",
        target=f"{_FOLLOWER}.take_append",
        old="prev <= raft.end and raft.log.term_at(prev - 1) == request.prev_term",
        new="prev <= raft.end",
    ),
    Mutant(
        name="a hole is crossed without probing behind it",
        target=f"{_LEADER}._send_append",
        old="and progress.may_agree_at(entries[0].first)",
        new="and False",
    ),
    Mutant(
        name="an install discards entries that the follower already has",
        target=f"{_FOLLOWER}.take_install",
        old="if not has_it:",
        new="if True:",
    ),
    # ── membership ───────────────────────────────────────────────────────────────────────────
    Mutant(
        name="two changes of voters at once",
        target=f"{_LEADER}.change_voters",
        old="or raft.is_changing",
        new="",
    ),
    Mutant(
        name="a change of voters before the term has a commit",
        target=f"{_LEADER}.change_voters",
        old="if not self.may_serve:",
        new="if False:",
    ),
    Mutant(
        name="several voters change at once",
        target=f"{_LEADER}.change_voters",
        old="> 1:",
        new="> 9:",
    ),
    Mutant(
        name="a cut leaves a change of voters in force",
        target=f"{_RAFT}.cut",
        old="while len(self._voters) > 1 and self._voters[-1][0] >= index:",
        new="while False:",
    ),
    # ── the log: rules (a) to (h) ────────────────────────────────────────────────────────────
    Mutant(
        name="(a) a batch is written before the mark under it is durable",
        target=f"{_LOG}._write",
        old="yield Wait.ROUND  # rule (a)\n",
        new="pass\n",
    ),
    Mutant(
        name="(b) the journal is cut before the segments",
        target=f"{_LOG}._cut",
        old="    self._segments.truncate(offset, has_holes=self.has_holes)\n",
        new=(
            "    self._journal.add(MarksCut(group=self.group, index=index))\n"
            "    yield\n"
            "    self._segments.truncate(offset, has_holes=self.has_holes)\n"
        ),
    ),
    Mutant(
        name="(c) segments are dropped before the new start is durable",
        target=f"{_LOG}._trim",
        old="    yield Wait.ROUND  # rule (c)\n",
        new="    self._segments.drop_before(start.offset)\n    yield\n",
    ),
    Mutant(
        name="(c) an install drops the old log before the new start is durable",
        target=f"{_LOG}._install",
        old="    yield Wait.ROUND  # rule (c)\n    self._segments.reset(start.offset)\n",
        new="    self._segments.reset(start.offset)\n    yield\n",
    ),
    Mutant(
        name="(d) what is written counts as durable",
        target=f"{_LOG}.append",
        old="        self._want_stable()\n",
        new=("        self._want_stable()\n        self._stability.synced(self.end)\n"),
    ),
    Mutant(
        name="(e) recovery keeps marks beyond the last batch",
        target="kafkaesque.log.marks:Marks.first_beyond",
        old="return self._indexes[place] if place < len(self._indexes) else None",
        new="return None",
    ),
    Mutant(
        name="(e) recovery accepts a batch of the wrong term",
        target=f"{_RECOVERY}:_scan",
        old="or term_at(base) not in (view.term, None)",
        new="",
    ),
    Mutant(
        name="(f) the newest batch is compacted away",
        target=f"{_SEGMENTS}.compactable",
        old="end <= below and segment.base < newest",
        new="end <= below",
    ),
    Mutant(
        name="(g) a mark at an offset follows the record there",
        target="kafkaesque.log.marks:Marks.index_at",
        old="bisect_right(self._offsets, offset)",
        new="bisect_left(self._offsets, offset)",
    ),
    Mutant(
        name="(h) a leader probes in the middle of a batch",
        target=f"{_VISIBLE}.boundary",
        old="return index - max(0, offset - self._segments.batch_base(offset))",
        new="return index",
    ),
    # ── the log: syncing and recovery ────────────────────────────────────────────────────────
    Mutant(
        name="a new segment's folder is not synced",
        target=f"{_SEGMENTS}.take_dirty",
        old="[self.folder] if self._is_folder_dirty else []",
        new="[]",
    ),
    Mutant(
        name="a recovered tail counts before a sync",
        target=f"{_LOG}.open",
        old="is_dirty = state.is_reset or segments.is_dirty",
        new="is_dirty = state.is_reset",
    ),
    Mutant(
        name="a recovered tail is never synced",
        target=f"{_RECOVERY}:_settle",
        old="files[1:] if ends_synced else files",
        new="files[1:]",
    ),
    Mutant(
        name="recovery does not check checksums",
        target=f"{_RECOVERY}:_scan",
        old="        view.check_crc()\n",
        new="",
    ),
    Mutant(
        name="damage to synced data is cut like a torn tail",
        target="kafkaesque.broker.storage.store:Store.refill_log",
        old="put_aside(self.journal, self._disk, {group: voters})",
        new="self.journal.groups[group].synced = None",
    ),
    Mutant(
        name="a damaged batch is read and served",
        target=f"{_VISIBLE}._checked_batches",
        old="            view.check_crc()\n",
        new="",
    ),
    Mutant(
        name="the synced point is not lowered before a cut",
        target=f"{_LOG}._cut",
        old="if synced is not None and synced.end_offset > offset:",
        new="if False:",
    ),
    Mutant(
        name="a cut does not hold back what counts as stable",
        target=f"{_LOG}._clamp",
        old="self._stability.clamps.append(index)",
        new="self._stability.clamps.append(1 << 60)",
    ),
    Mutant(
        name="compaction rewrites the segment that the synced point lies in",
        target=f"{_LOG}.compactable_below",
        old="return self._noted_base if self._may_compact else self.start.offset",
        new="return self.end_offset",
    ),
    Mutant(
        name="the journal's new name is not synced after a restart",
        target=f"{_JOURNAL}.open",
        old='disk.sync_now([file], [""])',
        new="disk.sync_now([file], [])",
    ),
    Mutant(
        name="a damaged copy of the journal's state is repaired but not reported",
        target="kafkaesque.log.journal:read_state",
        old='damaged = "" if is_whole else "second"',
        new='damaged = ""',
    ),
    Mutant(
        name="the journal does not keep votes",
        target="kafkaesque.log.journal_records:GroupState.snapshot",
        old="vote=self.hard_state.vote",
        new="vote=None",
    ),
    Mutant(
        name="a log that was set aside still writes for its group",
        target="kafkaesque.broker.storage.store:Store.refill_log",
        old="        damaged.close()\n",
        new="        pass\n",
    ),
    # ── flush policies, full disks, housekeeping ─────────────────────────────────────────────
    Mutant(
        name="under flush.policy=interval nothing is ever synced",
        target=f"{_STABILITY}.want",
        old="if self.policy is FlushPolicy.INTERVAL:",
        new="if False:",
    ),
    Mutant(
        name="an unsynced batch counts although the journal is behind",
        target=f"{_LOG}._countable",
        old="_NEVER_STABLE if self._operations or self._is_out else self._written",
        new="self._written",
    ),
    Mutant(
        name="a closed segment is not synced under flush.policy=os",
        target=f"{_STABILITY}.want",
        old="if has_rolled or ",
        new="if ",
    ),
    Mutant(
        name="a change of flush.policy leaves earlier records unsynced",
        target=f"{_LOG}.configure",
        old="if self._written > self.durable:",
        new="if False:",
    ),
    Mutant(
        name="a trim is durable before what it keeps",
        target=f"{_LOG}._trim",
        old="if not is_durable:",
        new="if False:",
    ),
    Mutant(
        name="a sync round that found no room forgets its files",
        target=f"{_LOG}.round_postponed",
        old="self._segments.put_back_dirty(files, folders)",
        new="pass",
    ),
    Mutant(
        name="a batch that found no room is skipped",
        target=f"{_LOG}._try_write",
        old="return 0",
        new="return len(batches)",
    ),
    Mutant(
        name="writes are accepted on a full disk",
        target="kafkaesque.broker.replication.replica:Replica.check_room",
        old="if self.is_full:",
        new="if False:",
    ),
    Mutant(
        name="retention deletes uncommitted records",
        target="kafkaesque.broker.cluster.housekeeper:Housekeeper._delete",
        old="below=watched.replica.settled_offset,",
        new="below=log.end_offset,",
    ),
    Mutant(
        name="compaction leaves a stale index beside the new batches",
        target="kafkaesque.log.segment:Segment.hide_index",
        old="index.remove_files()",
        new="pass",
    ),
    Mutant(
        name="compaction removes the first segment of the log",
        target=f"{_SEGMENTS}.is_first",
        old="self._segments[0] is segment",
        new="False",
    ),
    Mutant(
        name="a topic without compaction is compacted",
        target="kafkaesque.broker.cluster.housekeeper:Housekeeper._look_after",
        old="if settings.cleanup_policy is not CleanupPolicy.DELETE:",
        new="if True:",
    ),
    # ── groups at rest ───────────────────────────────────────────────────────────────────────
    Mutant(
        name="a group keeps resting although its leader's node is silent",
        target="kafkaesque.raft.roster:Roster._is_reachable",
        old="return unseen < self._config.election_ticks + self._config.heartbeat_ticks",
        new="return True",
    ),
    Mutant(
        name="the restart of a leader's node goes unnoticed",
        target="kafkaesque.raft.roster:Roster.receive",
        old="        self._wake_all([*peer.held, *peer.led])\n",
        new="",
    ),
    Mutant(
        name="a group removed from the roster keeps resting",
        target="kafkaesque.raft.roster:Roster._take_table",
        old="            self._wake_all([group])\n",
        new="            pass\n",
    ),
    # ── producers ────────────────────────────────────────────────────────────────────────────
    Mutant(
        name="producer state is not rebuilt from the log",
        target=f"{_KEEPER}._apply",
        old="self._producers.apply(view, view.base_offset, now_ms)",
        new="pass",
    ),
    Mutant(
        name="a deposed leader keeps uncommitted producer state",
        target=f"{_KEEPER}.serving_changed",
        old="self._producers = self._taken = None",
        new="pass",
    ),
    Mutant(
        name="a producer snapshot is written before its records are committed",
        target=f"{_KEEPER}._begin_writing",
        old="not self._is_taken_committed",
        new="self._taken is None",
    ),
    Mutant(
        name="a producer may skip a sequence",
        target="kafkaesque.broker.partition.producers:Producers.check",
        old="view.base_sequence == (known.last + 1) & SEQUENCE_MASK",
        new="view.base_sequence in (known.last + 1, known.last + 2)",
    ),
    Mutant(
        name="a batch counts as a duplicate if only its first sequence matches",
        target="kafkaesque.broker.partition.producers:Producers._repeated",
        old=" and batch.last_sequence == last",
        new="",
    ),
    Mutant(
        name="a batch counts as a duplicate of the previous transaction",
        target="kafkaesque.broker.partition.producers:Producers._repeated",
        old="since = self.transactions.first_offset(view.producer_id)",
        new="since = 0",
    ),
    Mutant(
        name="any batch older than a producer's last one counts as a duplicate",
        target="kafkaesque.broker.partition.producers:Producers._repeated",
        old="raise SequenceReused(view.producer_id, base, expected)",
        new="return known.batches[-1]",
    ),
    Mutant(
        name="a snapshot forgets where a producer's last batch ended",
        target="kafkaesque.broker.partition.producers:Producers.from_state",
        old="known.batches[-1].last_sequence",
        new="known.batches[-1].base_sequence",
    ),
    Mutant(
        name="a snapshot forgets the open transactions",
        target="kafkaesque.broker.partition.producers:Producers.from_state",
        old="if first != NO_TRANSACTION:",
        new="if False:",
    ),
    Mutant(
        name="reused sequences are reported as a gap, which is fatal for librdkafka",
        target="kafkaesque.broker.partition.producers:Producers._repeated",
        old="if view.is_transactional and",
        new="if not known and",
    ),
    Mutant(
        name="the end of the next transaction is compared with the one still ending",
        target="kafkaesque.machines.transactions.transaction:end",
        old="command.bumps_epoch and known.state in ENDING",
        new="False",
    ),
    Mutant(
        name="a batch of the next transaction joins the one still open here",
        target="kafkaesque.broker.partition.producers:Producers._check_open",
        old="view.producer_epoch > known.epoch",
        new="False",
    ),
)
