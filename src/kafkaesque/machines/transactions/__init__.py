"""Transactions as a machine. It holds transactional ids, their states, and the sinks of queries
whose batches are decided together. May import `catalog`, not `groups`.
"""
