"""Backups of topics and of where groups stand, made and restored through Kafka's protocol alone."""
