"""Kafka's protocol: our bytes against those of others."""
