"""A broker's data folder. It identifies the folder's owner, decides what can be trusted, opens
logs, and puts files aside or removes them. May import `replication` and `machine_hosting`.
"""
