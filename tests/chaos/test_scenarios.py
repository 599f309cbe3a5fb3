"""The short part of `make chaos`: what every change must survive."""

from pathlib import Path

import pytest

from tests.chaos import stories
from tests.chaos.disks import PoweredDisk
from tests.chaos.faults import missing
from tests.chaos.findings import Kind
from tests.chaos.scenario import SENT_MIN, Scenario
from tests.chaos.stage import Setting, Stage

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(one, id=one.name, marks=pytest.mark.complains(*one.complains))
        for one in stories.ALL
        if one.is_short
    ],
)
def test_no_record_is_lost_duplicated_or_moved_when(story: Scenario, tmp_path: Path) -> None:
    if story.hindrance:
        pytest.skip(story.hindrance)
    row = story.run(tmp_path)
    assert row.verdict.is_clean, row.verdict.report()
    assert not story.shortfalls(row)


@pytest.mark.skipif(bool(missing("mkfs.ext4", "losetup")), reason="needs root and ext4")
@pytest.mark.long
def test_without_syncing_a_power_loss_loses_acknowledged_records_and_is_detected(
    tmp_path: Path,
) -> None:
    """So the fault is real, and a broker that forgets to sync would be detected."""
    setting = Setting(disk=PoweredDisk, topic=("flush.policy=os",))
    with Stage(setting, tmp_path) as stage:
        stage.work(0.5)
        stage.lose_power(1)
        stage.start(1)
        row = stage.finish()
    assert row.verdict.kinds[Kind.LOST] > SENT_MIN
