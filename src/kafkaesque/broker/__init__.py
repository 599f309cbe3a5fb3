"""One node's replicas: the synchronous half of a broker, which takes callbacks and never awaits."""
