"""The settings of `archive` and `replay`."""

from dataclasses import dataclass

from kafkaesque.spark.pipelines.settings import PipelineSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings(PipelineSettings):
    """What to archive, and how."""

    topic: str = "clicks"
    format: str = "parquet"
    """`parquet` or `delta`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings(PipelineSettings):
    """Which archive to replay, and where to."""

    topic: str = "clicks-again"
    """The topic to fill; it is created if it does not exist, and keeps records forever."""
    archive: str = "pipelines/archive"
    """The folder of the pipeline `archive`."""
    format: str = "parquet"
    """`parquet` or `delta`, as in the archive."""

    @property
    def topics(self) -> tuple[str, ...]:
        """None: it creates its topic itself, with as many partitions as the archive has."""
        return ()
