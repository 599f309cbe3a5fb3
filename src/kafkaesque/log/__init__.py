"""One partition's log on disk: segments, indexes, marks, the broker's journal, recovery."""
