"""uvicorn without its command line, for processes of ours that only serve.

Its package imports `uvicorn.main`, and with that click and multiprocessing: a tenth of a registry's start. A program
that embeds a server of ours keeps all of uvicorn.
"""

import sys
from types import ModuleType


def leave_out_command_line() -> None:
    """Call it before uvicorn is imported for the first time; later it has no effect."""
    if "uvicorn" not in sys.modules:
        absent = ModuleType("uvicorn.main")
        absent.__getattr__ = lambda name: None  # type: ignore[method-assign]  # whatever is taken from it
        sys.modules["uvicorn.main"] = absent
