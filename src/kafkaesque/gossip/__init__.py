"""Cluster discovery by gossip: which brokers exist, and their addresses; without I/O."""
