"""Benchmarks: each states its question and prints one JSON line for each figure."""
