"""Complete programs, one per messaging pattern; `python examples/orders.py` runs one.

Without an argument each starts its own broker; with `host:port` it uses that one.
"""
