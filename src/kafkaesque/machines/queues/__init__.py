"""Queues: share groups, which deliver each record to one of their members. It holds the state of
deliveries on one partition, its records, and the machine that keeps these. May import `decision`,
not `groups` and `transactions`.
"""
