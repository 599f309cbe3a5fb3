"""Measures Kafkaesque and the systems that a user might pick instead, side by side in one run."""
