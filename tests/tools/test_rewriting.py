"""In a fresh clone each process imports a share of the files of tests, and what cannot be imported is left out."""

import sys
from pathlib import Path

import pytest

from tools import rewriting

FILES = {"good": "", "other": "", "raises": "raise ValueError", "wrong": "wrong("}
FILES |= {"warns": "import warnings\nwarnings.warn('old', DeprecationWarning)"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "tests" / "shared_out_here"
    made.mkdir(parents=True)
    for name, text in FILES.items():
        (made / f"test_{name}.py").write_text(text)
    monkeypatch.setattr(sys.modules["tests"], "__path__", [str(tmp_path / "tests")])
    return made


def test_what_cannot_be_imported_is_left_to_the_collection(tmp_path: Path, folder: Path) -> None:
    rewriting.import_all(tmp_path, sorted(folder.iterdir()))
    names = {name for name in sys.modules if name.startswith("tests.shared_out_here")}
    for name in names:
        del sys.modules[name]
    assert names == {"tests.shared_out_here", *(f"tests.shared_out_here.test_{name}" for name in ("good", "other"))}


def test_each_process_takes_a_share_unless_most_files_were_rewritten_before(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(root: Path, files: list[Path]) -> None:
        (tmp_path / files[0].stem).write_text(" ".join(sorted(file.stem for file in files)))

    monkeypatch.setattr(rewriting, "import_all", noted)
    rewriting.share_out(tmp_path, 1)
    assert [*tmp_path.iterdir()] == [tmp_path / "tests"], "one process would do what collecting does anyway"
    rewriting.share_out(tmp_path, 2)
    shares = [path.read_text().split() for path in sorted(tmp_path.glob("test_*"))]
    assert [len(share) for share in shares] == [3, 2]
    assert sorted(name for share in shares for name in share) == sorted(f"test_{name}" for name in FILES)

    for path in tmp_path.glob("test_*"):
        path.unlink()
    (folder / "__pycache__").mkdir()
    for name in ("good", "other", "raises"):
        (folder / "__pycache__" / f"test_{name}.cpython-311-pytest-9.2.0.pyc").touch()
    rewriting.share_out(tmp_path, 2)
    assert [*tmp_path.iterdir()] == [tmp_path / "tests"]
