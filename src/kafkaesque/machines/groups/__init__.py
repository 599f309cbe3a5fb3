"""Consumer groups and share groups as a machine. Here are classic groups, groups whose coordinator
assigns, the way from one of these kinds to the other, committed offsets, and share groups. May
import `catalog`, not `transactions`.
"""
