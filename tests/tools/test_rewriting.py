"""Each worker imports a share of the files of tests, and what cannot be imported is left to the collection."""

import sys
import threading
from pathlib import Path

import pytest

from tools.rewriting import import_share, of

FILES = {"good": "", "other": "", "raises": "raise ValueError", "wrong": "wrong("}
FILES |= {"warns": "import warnings\nwarnings.warn('old', DeprecationWarning)"}


def test_every_file_is_imported_by_one_worker_and_all_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tests" / "shared_out_here"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / f"test_{name}.py").write_text(text)
    monkeypatch.setattr(sys.modules["tests"], "__path__", [str(tmp_path / "tests")])
    mark = tmp_path / "mark"
    first = threading.Thread(target=import_share, args=(tmp_path, 0, 2, mark))
    first.start()
    while not of(mark, 0).exists():
        assert first.is_alive()
    imported = {name for name in sys.modules if name.startswith("tests.shared_out_here.test_")}
    assert first.is_alive() and imported == {"tests.shared_out_here.test_good"}
    import_share(tmp_path, 1, 2, mark)
    first.join()
    kept = {name for name in sys.modules if name.startswith("tests.shared_out_here.")}
    assert kept == {"tests.shared_out_here.test_good", "tests.shared_out_here.test_other"}
    for name in kept | {"tests.shared_out_here"}:
        del sys.modules[name]
