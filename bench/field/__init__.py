"""Measures Kafkaesque side by side with the systems that users might pick instead."""
