"""Folders of earlier versions can be opened, and those of later versions are refused."""

import shutil
import struct
from pathlib import Path

import pytest

from kafkaesque.errors import NewerFormat
from kafkaesque.log.journal import FORMAT, PATH
from kafkaesque.record.crc import crc32c
from tests.golden.write import dump, write
from tools.repository import ROOT

HERE = Path(__file__).parent
FORMATS = sorted(path.stem for path in HERE.glob("format-*.txt"))


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_there_is_a_folder_of_every_format_up_to_ours() -> None:
    numbers = range(1, FORMAT + 1)
    assert [f"format-{number}" for number in numbers] == FORMATS


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_of_every_format_has_its_contents(name: str, tmp_path: Path) -> None:
    shutil.copytree(HERE / name, tmp_path, dirs_exist_ok=True)
    expected = (HERE / f"{name}.txt").read_text()
    assert dump(tmp_path) == expected
    assert dump(tmp_path) == expected, "opening it changed its contents"


@pytest.mark.requirement("LOG-1")
def test_the_current_format_has_not_changed(tmp_path: Path) -> None:
    write(tmp_path)
    ours, kept = files_in(tmp_path), files_in(HERE / f"format-{FORMAT}")
    assert ours.keys() == kept.keys()
    # How a journal is split into frames may change; its contents may not.
    assert {**ours, PATH: b""} == {**kept, PATH: b""}
    assert dump(tmp_path) == (HERE / f"format-{FORMAT}.txt").read_text()


def test_the_frame_on_the_format_page_is_in_the_folder() -> None:
    page = (ROOT / "docs" / "reference" / "format-journal.md").read_text()
    example = page.split("```")[3]
    assert bytes.fromhex(example) in (HERE / "format-1" / PATH).read_bytes()


@pytest.mark.parametrize("version", [FORMAT + 1, 0xFFFF])
def test_a_folder_of_a_later_format_is_refused_and_not_changed(
    version: int, tmp_path: Path
) -> None:
    shutil.copytree(HERE / f"format-{FORMAT}", tmp_path, dirs_exist_ok=True)
    journal = tmp_path / PATH
    data = journal.read_bytes()
    head = data[:8] + struct.pack(">H", version) + data[10:18]
    journal.write_bytes(head + struct.pack(">I", crc32c(head)) + data[22:])
    before = files_in(tmp_path)
    with pytest.raises(NewerFormat) as caught:
        dump(tmp_path)
    assert (caught.value.found, caught.value.known) == (version, FORMAT)
    assert files_in(tmp_path) == before
