"""Coordinators of groups and of transactions. Each hosts a machine on one partition of an internal
topic, by `Coordinator` of `machine_hosting`. May import every other room of the broker.
"""
