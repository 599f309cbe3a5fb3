"""Kafka's protocol: our bytes against those of other implementations."""
