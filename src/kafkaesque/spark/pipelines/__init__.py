"""Ready-made jobs on topics, and the blocks that they are built of."""
