"""The words that every package shares.

An *offset* numbers the records of a partition, densely from 0, and is what clients see. An *index*
numbers what Raft sees: records and marks together (`index = offset + marks before it`). Both are
plain integers, because they are added and compared on the hot path; names keep them apart:
a variable that holds an index says so.

All ranges are half-open. `end` and `commit` are the first index *not* in the log or *not*
committed, so that the high watermark that a Kafka client sees is the commit index with the marks
taken out.
"""

from typing import TypeAlias

Offset: TypeAlias = int
Index: TypeAlias = int
Term: TypeAlias = int

NodeId: TypeAlias = int
"""One directory of one broker: a broker that lost its disk comes back with another one."""

GroupId: TypeAlias = str
"""One Raft group; also the folder of its log below the data folder."""

Buffer: TypeAlias = bytes | bytearray | memoryview

NO_TERM: Term = 0
"""The term before the first election; no leader ever holds it."""
