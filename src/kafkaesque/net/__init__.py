"""Links between brokers: bytes of one connection per pair, and what they carry."""
