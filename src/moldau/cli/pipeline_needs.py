"""The packages that a command of the pipeline needs, which are extras."""

import importlib.util

from moldau.errors import ConfigError


def need(*modules: str, extra: str = "spark") -> None:
    """ConfigError that says how to install what is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"the pipeline needs {module}: install it with 'pip install moldau[{extra}]'")
