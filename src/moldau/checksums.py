"""CRC-32C, from the compiled module inside the package `crc32c`.

Importing the package itself also imports its command line and reads its version: argparse, importlib.metadata and
zipfile, which took a twentieth of a broker's start and 2 MB. If the compiled module is not where it usually is, the
package is imported after all.
"""

from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, PathFinder
from types import ModuleType
from typing import cast


def _compiled() -> ModuleType | None:
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
        return None
    module = spec.loader.create_module(spec)
    spec.loader.exec_module(module)
    return module


def _function() -> Callable[..., int]:
    if (module := _compiled()) is not None:
        return cast(Callable[..., int], module.crc32c)
    from crc32c import crc32c

    return crc32c


crc32c = _function()
"""`crc32c(data, crc=0)`: the checksum of any buffer, going on from `crc`."""
