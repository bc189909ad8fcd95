"""Compiled columns that were made of other sources are refused in one sentence, where that is known."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.records import compiled_from

SENTENCE = "was compiled from other sources than those beside it: run `make setup`"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scanning.py").write_text("x = 1")
    (tmp_path / "scanning.so").touch()
    return tmp_path


def test_sources_that_changed_since_are_noticed(folder: Path) -> None:
    compiled_from.note(folder)
    assert not compiled_from.is_outdated(folder)
    (folder / "scanning.py").write_text("x = 2")
    assert compiled_from.is_outdated(folder)
    compiled_from.note(folder)
    assert not compiled_from.is_outdated(folder)
    (folder / "scanning.pxd").write_text("cdef int x")
    assert compiled_from.is_outdated(folder)


def test_without_a_note_or_with_one_older_than_the_compiled_files_nothing_is_said(folder: Path) -> None:
    assert not compiled_from.is_outdated(folder)
    compiled_from.note(folder)
    (folder / "scanning.py").write_text("x = 2")
    os.utime(folder / compiled_from.NOTE, (1, 1))
    assert not compiled_from.is_outdated(folder)


def test_an_import_of_outdated_columns_is_one_sentence() -> None:
    program = """
import importlib.util
from types import SimpleNamespace
from moldau.records import compiled_from
importlib.util.find_spec = lambda _: SimpleNamespace(origin="scanning.so")
compiled_from.is_outdated = lambda: True
import moldau.records.columns
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and SENTENCE in done.stderr.splitlines()[-1]
