"""Errors of the data source reach the user as one sentence, from Spark's driver and from its tasks."""

import contextlib
import os
from collections.abc import Iterator

from moldau.errors import MoldauError

HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
WORKERS_VARIABLES = "PYTHON_WORKER_FACTORY_"


@contextlib.contextmanager
def in_a_sentence() -> Iterator[None]:
    """Make Spark report an error of ours without its traceback. A worker process of Spark ends after it has reported an
    error, so the variable that hides the traceback affects no other one."""
    try:
        yield
    except MoldauError:
        if any(name.startswith(WORKERS_VARIABLES) for name in os.environ):
            os.environ[HIDE_TRACEBACK] = "1"
        raise
