"""One Raft group's replica on this broker. It carries out what Raft decided, notifies waiting
callers, repairs and hands over, and knows who leads which group. It may import no other room of
the broker.
"""
