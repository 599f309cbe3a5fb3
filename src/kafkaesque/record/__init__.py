"""Kafka's record batches, format 2: inspected without decoding, built, read, compressed."""
