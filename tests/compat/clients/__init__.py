"""Unmodified clients of others behind one interface, so that each is asked the same things."""
