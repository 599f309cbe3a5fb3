"""The names of Raft groups: the catalog's, and those of partitions, which are their folders."""

from kafkaesque.machines.catalog.catalog_values import Topic
from kafkaesque.types import GroupId

CATALOG_GROUP: GroupId = "cluster-metadata"

_NAME_CHARS_IN_PATH = 180


def folder_of(topic: Topic) -> str:
    """Return a topic's folder; its id distinguishes topics of the same name."""
    return f"{topic.name[:_NAME_CHARS_IN_PATH]}.{topic.topic_id.hex()}"


def is_folder_of(folder: str, name: str) -> bool:
    """Whether a folder belongs to a topic of this name, or to a deleted one of the same name."""
    return folder.rpartition(".")[0] == name[:_NAME_CHARS_IN_PATH]


def group_of(topic: Topic, index: int) -> GroupId:
    """Return the group of a partition, which is also its folder."""
    return f"{folder_of(topic)}/{index}"
