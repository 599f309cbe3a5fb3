"""Backups: their files, and real brokers that are saved and restored."""
