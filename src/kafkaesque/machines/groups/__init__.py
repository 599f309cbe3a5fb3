"""Consumer groups as a machine. Here are classic groups, groups whose coordinator assigns, the way
from one kind to the other, and committed offsets. May import `catalog`, not `transactions`.
"""
