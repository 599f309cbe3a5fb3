"""How brokers find each other: who there is, where, and who leads; without I/O."""
