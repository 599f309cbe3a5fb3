"""Kafka's protocol as values: declared messages, their encoding, headers, frames and codes.

`messages` holds one file per API, `apis` their table. `codec` encodes and decodes a message at any
version that its API serves. Nothing here reads a socket or a clock.
"""
