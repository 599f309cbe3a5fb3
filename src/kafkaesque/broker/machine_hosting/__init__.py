"""Keeps machines on the logs of replicas, and hosts those that decide. A machine is replayed from
its log, saved beside it and followed as entries are committed; the beginning of the log goes once a
snapshot covers it. May import `replication`.
"""
