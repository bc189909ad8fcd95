"""The packages that a web console needs."""

import os

from moldau.errors import ConfigError
from moldau.names import how_to_install


def needed() -> None:
    """Raise `ConfigError`, with how to install it, if a package of the extra `console` is missing."""
    # Read when Arrow is loaded: its own allocators keep 30 to 50 MB more of what a search has used than the system's.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        import moldau.console.server  # noqa: F401
    except ImportError as missing:
        raise ConfigError(f"the console needs {missing.name}: {how_to_install('console')}") from None
