"""A small client on the protocol's messages, for everything in this package but the broker."""
