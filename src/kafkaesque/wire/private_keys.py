"""The keys of our own APIs, which Kafka does not have.

Kafka numbers its APIs upwards from 0 and is below 100 so far. Ours begin where it will not come.
They are advertised as all others are: a client skips the keys that it does not know.
"""

PRIVATE_KEY_FIRST = 20_000

PREPARE_TXN = 20_000
LIST_PREPARED = 20_001
REGISTER_DRIVER = 20_002
DECIDE_BATCH = 20_003
DESCRIBE_BATCH = 20_004
