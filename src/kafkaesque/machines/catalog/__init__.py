"""The cluster's metadata as a machine. It holds brokers, topics, their settings and feature levels,
and pure functions that plan where partitions and voters go. May import `machine` and `decision`.
"""
