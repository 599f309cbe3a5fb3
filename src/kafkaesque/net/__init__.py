"""Links between brokers: one connection per pair, and the frames it carries."""
