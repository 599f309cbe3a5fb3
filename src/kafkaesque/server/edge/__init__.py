"""Connections: bytes in, bytes out, limits. A connection is let in, its first bytes say which
protocol it speaks, its requests are cut out and dispatched to handlers, and what happens is counted
and logged. May import `handlers` and all that they import.
"""
