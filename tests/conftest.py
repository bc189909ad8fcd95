"""What every test gets: columns interpreted when asked for, and the profiles of property tests.

`MOLDAU_INTERPRETED=1` makes `moldau.records.columns` run from its Python files even where they are compiled, so that
the same tests run both ways. `MOLDAU_PROFILE=long` makes property tests search a hundred times longer.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

COLUMNS = Path(__file__).parents[1] / "src" / "moldau" / "records" / "columns"

hypothesis.settings.register_profile("usual", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True)
hypothesis.settings.register_profile("long", deadline=None, print_blob=True, max_examples=10_000)
hypothesis.settings.load_profile(os.environ.get("MOLDAU_PROFILE") or ("ci" if os.environ.get("CI") else "usual"))


class InterpretedColumns(importlib.abc.MetaPathFinder):
    """Finds the modules of records/columns as Python files, before anyone finds the compiled ones beside them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if package != "moldau.records.columns":
            return None
        return importlib.util.spec_from_file_location(name, COLUMNS / f"{module}.py")


def stale_columns() -> list[str]:
    """Compiled modules older than their source: what runs would not be what one reads."""
    return [
        so.name
        for so in sorted(COLUMNS.glob("*.so"))
        if (source := COLUMNS / f"{so.name.partition('.')[0]}.py").exists()
        and source.stat().st_mtime > so.stat().st_mtime
    ]


if os.environ.get("MOLDAU_INTERPRETED"):
    sys.meta_path.insert(0, InterpretedColumns())
elif stale := stale_columns():
    pytest.exit(f"compiled before its source changed: {', '.join(stale)}; run `make setup`", returncode=3)


def pytest_report_header() -> str:
    forced = bool(os.environ.get("MOLDAU_INTERPRETED"))
    compiled = not forced and any(COLUMNS.glob("*.so"))
    return f"records/columns: {'compiled' if compiled else 'interpreted'}"
