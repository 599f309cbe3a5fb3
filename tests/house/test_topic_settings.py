"""Every topic setting has an effect that a test shows, or is declared to have none."""

from kafkaesque.topic_settings import TOPIC_SETTINGS
from tools.repository import python_files
from tools.requirements_page import marked_ids

ACTING = {name for name, row in TOPIC_SETTINGS.items() if row.acts}


def test_every_effective_setting_has_a_test() -> None:
    files = python_files("tests")
    shown = {name for file in files for name in marked_ids(file.read_text(), "setting")}
    assert ACTING - shown == set(), 'mark a test with @pytest.mark.setting("name")'
    assert shown - ACTING == set(), "there is no such setting, or its row says `acts=False`"


def test_a_setting_without_effect_says_so() -> None:
    silent = {name for name, row in TOPIC_SETTINGS.items() if "without effect" not in row.does}
    assert silent == ACTING
