"""Backups of topics and consumer groups' positions, using only Kafka's protocol."""
