"""The settings of `archive` and `replay`."""

from dataclasses import dataclass

from kafkaesque.spark.pipelines.settings import PipelineSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings(PipelineSettings):
    """What is archived, and how."""

    topic: str = "clicks"
    format: str = "parquet"
    """`parquet` or `delta`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings(PipelineSettings):
    """Which archive goes where."""

    topic: str = "clicks-again"
    """The topic that is filled; it is made if it is not there, and keeps records for ever."""
    archive: str = "pipelines/archive"
    """The folder of the pipeline `archive`."""
    format: str = "parquet"
    """`parquet` or `delta`, as it was archived."""

    @property
    def topics(self) -> tuple[str, ...]:
        """None: it makes its topic itself, with as many partitions as the archive has."""
        return ()
