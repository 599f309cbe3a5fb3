"""Planted bugs in what brokers answer to clients and accept from them; tests should notice."""

from tests.mutants.mutation import Mutant

_CONTROLLERS = "kafkaesque.server.edge.controllers:Controllers.look"
_METADATA = "kafkaesque.server.handlers.metadata"
_PRODUCERS = "kafkaesque.server.handlers.describe_producers"
_ADMISSION = "kafkaesque.broker.partition.admission:Admission"

SERVER_MUTANTS = (
    # ── lost controllers ─────────────────────────────────────────────────────────────────────
    Mutant(
        name="a lost controller is found lost at every look",
        target=_CONTROLLERS,
        old="self._known -= lost",
        new="pass",
    ),
    Mutant(
        name="brokers without a controller close all connections at once",
        target=_CONTROLLERS,
        old="self._looks + self._place() * LOOKS_APART",
        new="self._looks",
    ),
    Mutant(
        name="a broker that does not lead counts as the controller",
        target=_CONTROLLERS,
        old="self._known.add(leader)",
        new="self._known.update(present(broker))",
    ),
    # ── topics that are not open yet ─────────────────────────────────────────────────────────
    Mutant(
        name="an uncommitted topic is described by its id",
        target=f"{_METADATA}:_describe",
        old="committed = broker.committed_catalog.machine.topic_by_id(topic.topic_id)",
        new="committed = topic",
    ),
    Mutant(
        name="an uncommitted topic is listed",
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
        name="the start of a producer's open transaction is not described",
        target=f"{_PRODUCERS}:_partition",
        old="current_txn_start_offset=one.first_offset",
        new="current_txn_start_offset=-1",
    ),
    Mutant(
        name="a partition's producers are described once for each mention",
        target=f"{_PRODUCERS}:handle",
        old="dict.fromkeys(topic.partition_indexes)",
        new="topic.partition_indexes",
    ),
    # ── timestamp bounds ─────────────────────────────────────────────────────────────────────
    Mutant(
        name="a batch's age is that of its newest record",
        target=f"{_ADMISSION}._check_times",
        old="now_ms - view.base_timestamp_ms",
        new="now_ms - view.max_timestamp_ms",
    ),
    Mutant(
        name="a batch's lead is that of its first record",
        target=f"{_ADMISSION}._check_times",
        old="view.max_timestamp_ms - now_ms",
        new="view.base_timestamp_ms - now_ms",
    ),
    Mutant(
        name="a timestamp bound is one millisecond too strict",
        target=f"{_ADMISSION}._check_times",
        old="behind_ms > self._before_ms",
        new="behind_ms >= self._before_ms",
    ),
    Mutant(
        name="a batch without timestamps is checked against the timestamp bounds",
        target=f"{_ADMISSION}._check_times",
        old="view.max_timestamp_ms < 0",
        new="False",
    ),
    Mutant(
        name="producers' timestamps are checked under LogAppendTime",
        target=f"{_ADMISSION}.__init__",
        old="is_timed and not self.is_append_time",
        new="is_timed",
    ),
)
