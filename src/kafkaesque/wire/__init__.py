"""Kafka's protocol as values: messages declared once, their bytes, headers, frames and codes.

`messages` holds one file per API, `apis` the table of them all. `codec` turns a message into bytes
and back, at any version that its API serves. Nothing here reads a socket or a clock.
"""
