"""Long runs of worlds that fail on purpose are not logged."""

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def unlogged(level: int = logging.CRITICAL) -> Iterator[None]:
    """Nothing up to this level is logged meanwhile, and afterwards what was before."""
    before = logging.root.manager.disable
    logging.disable(level)
    try:
        yield
    finally:
        logging.disable(before)
