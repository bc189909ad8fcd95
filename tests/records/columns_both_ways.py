"""The columns compiled (where they are) and interpreted, side by side in one process."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import moldau.records.columns as installed

MODULES = (
    "scanning",
    "plain_batches",
    "seeking",
    "layouts",
    "decoding",
    "encoding",
    "hashing",
    "digesting",
    "filling",
    "cleaning",
)


def load_interpreted() -> Any:
    """The Python files as modules of their own, which find each other and not the compiled ones."""
    folder = Path(installed.__file__).parent
    names = [f"moldau.records.columns.{module}" for module in MODULES]
    kept = {name: sys.modules.pop(name) for name in names}
    loaded: dict[str, ModuleType] = {}
    try:
        for module, name in zip(MODULES, names, strict=True):
            spec = importlib.util.spec_from_file_location(name, folder / f"{module}.py")
            assert spec and spec.loader
            loaded[module] = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[module])
    finally:
        sys.modules.update(kept)
    assert not any(module.COMPILED for module in loaded.values())
    faces = {
        name: getattr(module, name) for module in loaded.values() for name in installed.__all__ if hasattr(module, name)
    }
    return SimpleNamespace(**{**faces, "COMPILED": False})


interpreted = load_interpreted()
both = [installed, interpreted]
each = [pytest.param(installed, id="as installed"), pytest.param(interpreted, id="interpreted")]
"""The ways to test one by one: a single one where nothing is compiled (`MOLDAU_INTERPRETED`), since both are the same
files there."""
if not installed.COMPILED:
    del each[1:]
