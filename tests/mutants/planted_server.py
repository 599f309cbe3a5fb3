"""Planted bugs in what brokers tell their clients and take from them; tests are to notice them."""

from tests.mutants.mutation import Mutant

_CONTROLLERS = "kafkaesque.server.edge.controllers:Controllers.look"
_METADATA = "kafkaesque.server.handlers.metadata"
_PRODUCERS = "kafkaesque.server.handlers.describe_producers"
_ADMISSION = "kafkaesque.broker.partition.admission:Admission"

SERVER_MUTANTS = (
    # ── controllers that are lost ────────────────────────────────────────────────────────────
    Mutant(
        name="a lost controller is lost again each time",
        target=_CONTROLLERS,
        old="self._known -= lost",
        new="pass",
    ),
    Mutant(
        name="brokers that are left close their connections all at once",
        target=_CONTROLLERS,
        old="self._looks + self._place() * LOOKS_APART",
        new="self._looks",
    ),
    Mutant(
        name="one that does not lead is taken for a controller",
        target=_CONTROLLERS,
        old="self._known.add(leader)",
        new="self._known.update(present(broker))",
    ),
    # ── topics that are not open yet ─────────────────────────────────────────────────────────
    Mutant(
        name="a topic that is decided on and not committed is described by its id",
        target=f"{_METADATA}:_describe",
        old="committed = broker.committed_catalog.machine.topic_by_id(topic.topic_id)",
        new="committed = topic",
    ),
    Mutant(
        name="a topic that is not committed is listed among all",
        target=f"{_METADATA}:handle",
        old="committed = broker.committed_catalog.machine",
        new="committed = broker.catalog",
    ),
    Mutant(
        name="a broker whose catalog is behind says that a topic does not exist",
        target=f"{_METADATA}:_find",
        old="ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_sure else later",
        new="ErrorCode.UNKNOWN_TOPIC_OR_PARTITION",
    ),
    # ── producers ────────────────────────────────────────────────────────────────────────────
    Mutant(
        name="where a producer's open transaction begins is not told",
        target=f"{_PRODUCERS}:_partition",
        old="current_txn_start_offset=one.first_offset",
        new="current_txn_start_offset=-1",
    ),
    Mutant(
        name="a partition's producers are told as often as it is named",
        target=f"{_PRODUCERS}:handle",
        old="dict.fromkeys(topic.partition_indexes)",
        new="topic.partition_indexes",
    ),
    # ── bounds of time ───────────────────────────────────────────────────────────────────────
    Mutant(
        name="a batch counts as old as its newest record",
        target=f"{_ADMISSION}._check_times",
        old="now_ms - view.base_timestamp_ms",
        new="now_ms - view.max_timestamp_ms",
    ),
    Mutant(
        name="a batch counts as far ahead as its first record",
        target=f"{_ADMISSION}._check_times",
        old="view.max_timestamp_ms - now_ms",
        new="view.base_timestamp_ms - now_ms",
    ),
    Mutant(
        name="a bound of time takes one millisecond less",
        target=f"{_ADMISSION}._check_times",
        old="behind_ms > self._before_ms",
        new="behind_ms >= self._before_ms",
    ),
    Mutant(
        name="a batch without timestamps is held against the bounds of time",
        target=f"{_ADMISSION}._check_times",
        old="view.max_timestamp_ms < 0",
        new="False",
    ),
    Mutant(
        name="times of producers are bounded where the broker writes its own",
        target=f"{_ADMISSION}.__init__",
        old="is_timed and not self.is_append_time",
        new="is_timed",
    ),
)
