"""Data folders of every format that was ever released, and their expected contents."""
