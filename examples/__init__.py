"""Complete programs, each a story of one messaging pattern; `python examples/orders.py` runs one.

Without an argument each starts a broker of its own; given `host:port` it uses that one.
"""
