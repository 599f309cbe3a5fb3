"""Data folders of every format that was ever released, and what must be found in them."""
