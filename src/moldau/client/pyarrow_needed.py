"""Columns need pyarrow, which a base install lacks."""

import importlib.util

from moldau.errors import ConfigError


def need_pyarrow(what: str) -> None:
    """Raise `ConfigError`, with how to install pyarrow, if it is missing; `what` needs it."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ConfigError(f"{what} needs pyarrow: install it with pip install 'moldau[arrow]'")
