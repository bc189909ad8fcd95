"""The packages that a web console needs."""

from moldau.errors import ConfigError
from moldau.names import how_to_install


def needed() -> None:
    """Raise `ConfigError`, with how to install it, if a package of the extra `console` is missing."""
    try:
        import moldau.console.server  # noqa: F401
    except ImportError as missing:
        raise ConfigError(f"the console needs {missing.name}: {how_to_install('console')}") from None
