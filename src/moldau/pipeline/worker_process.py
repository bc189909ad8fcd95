"""What one of Spark's Python workers does once, before its first batch of rows."""

import gc
from functools import cache


@cache
def keep_imported() -> None:
    """Keep what this process has imported out of later garbage collections: PySpark's daemon runs a full one after each
    task (`pyspark/daemon.py`), which takes longer than reading a small partition."""
    gc.collect()
    gc.freeze()
