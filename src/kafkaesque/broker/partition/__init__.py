"""One partition as clients see it. It takes batches and refuses some, keeps the state of producers
and of open transactions, finds records by time, and remembers fetch sessions. May import
`replication` and `machine_hosting`, not `storage`.
"""
