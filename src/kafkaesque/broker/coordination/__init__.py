"""Coordinators of groups and of transactions. Each hosts a machine on one partition of an internal
topic, and answers commands once they are committed. May import every other room of the broker.
"""
