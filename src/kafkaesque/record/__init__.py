"""Kafka's record batches, format 2: seen without decoding, built, read, compressed."""
