"""The basic types that every package shares.

An *offset* numbers the records of a partition, densely from 0, and is what clients see. An *index*
numbers what Raft sees: records and marks together (`index = offset + marks before it`). Both are
plain integers, because the hot path adds and compares them; names keep them apart: a variable that
holds an index says so.

All ranges are half-open. `end` and `commit` are the first index *not* in the log or *not*
committed, so the high watermark that a Kafka client sees is the commit index minus the marks.
"""

from typing import TypeAlias

Offset: TypeAlias = int
Index: TypeAlias = int
Term: TypeAlias = int

NodeId: TypeAlias = int
"""One directory of one broker: a broker that lost its disk returns with another id."""

GroupId: TypeAlias = str
"""One Raft group; also the name of its log's folder in the data folder."""

Buffer: TypeAlias = bytes | bytearray | memoryview

NO_TERM: Term = 0
"""The term before the first election; no leader ever holds it."""
