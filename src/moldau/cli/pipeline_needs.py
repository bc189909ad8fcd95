"""The packages that a command of the pipeline needs, which are extras."""

import importlib.util

from moldau.errors import ConfigError
from moldau.names import how_to_install


def need(*modules: str, extra: str = "spark") -> None:
    """ConfigError that says how to install what is missing."""
    for module in modules:
        if not _is_there(module):
            raise ConfigError(f"the pipeline needs {module}: {how_to_install(extra)}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False
