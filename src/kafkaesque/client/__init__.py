"""A small client on the protocol's messages, for everything of ours that is not the broker."""
