"""What brokers know of each other and of the catalog. Here a broker opens the replicas that the
catalog gives it, moves and refills them, asks the others, and looks after the cluster while it
leads the catalog. May import the rooms of one replica and one partition, and `storage`.
"""
