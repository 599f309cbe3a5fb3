"""Why backups cannot be made, checked or restored."""

from kafkaesque.errors import KafkaesqueError


class BackupError(KafkaesqueError):
    """A backup that cannot be made, checked or restored as requested."""


class DamagedBackup(BackupError):
    """A file of a backup differs from what was written."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class BackupExists(BackupError):
    """The folder holds other files, a complete backup, or a backup of something else."""


class TopicNotEmpty(BackupError):
    """A topic to restore into already exists, with records or with other settings."""
