"""The daemon from which Spark forks its Python workers, with what a reader of topics needs already imported.

Spark starts this module instead of `pyspark.daemon` if `spark.python.daemon.module` names it. PySpark's daemon imports
no worker module before it forks, because an import may start threads, and a fork does not copy threads. So each worker
imports Arrow and this package again. This daemon imports them once, checks that no thread was started, and continues as
`pyspark.daemon`. Nothing that it imports seeds random numbers for all workers: Python seeds `random` anew after a fork.

It also imports the installed PySpark instead of the archive of the same PySpark, from which each process would compile
every module again (`spark_home.py`).
"""

import gc
import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

SPARKS_OWN = "pyspark.daemon"
PRELOADED = ("pyspark.worker", "pyspark.sql.worker.plan_data_source_read", "pyspark_moldau", "moldau.records.arrow")
THREADS = Path("/proc/self/task")
"""An entry for each thread of this process, also for those that Python does not know; only on Linux."""
OF_JEMALLOC = "JE_ARROW_MALLOC_CONF"
"""Settings of the jemalloc in Arrow, which starts a thread when it is loaded, though Arrow uses mimalloc by default."""


def main() -> None:
    """Serve as `pyspark.daemon` does, with its arguments, standard input and standard output."""
    sys.path[:] = without_archives(sys.path)
    if THREADS.is_dir() and not preload(PRELOADED):
        os.execv(sys.executable, [sys.executable, "-m", SPARKS_OWN, *sys.argv[1:]])
    importlib.import_module(SPARKS_OWN).manager()


def without_archives(path: Iterable[str]) -> list[str]:
    """The path without the archives of the PySpark that is installed in one of its folders. It keeps those of another
    Spark, which may have another version, and all of them if py4j exists only in an archive."""
    given = list(path)
    installed = [Path(folder) for folder in given if Path(folder, "pyspark", "__init__.py").is_file()]
    if not any(Path(folder, "py4j", "__init__.py").is_file() for folder in given):
        return given
    archives = {str(folder / "pyspark" / "python" / "lib") for folder in installed}
    return [entry for entry in given if not (entry.endswith(".zip") and os.path.dirname(entry) in archives)]


def preload(names: Iterable[str]) -> bool:
    """Import these modules, and keep them out of the garbage collections of all workers. Returns False if one cannot be
    imported or has started a thread: then this process must not fork."""
    os.environ.setdefault(OF_JEMALLOC, "background_thread:false")
    try:
        for name in names:
            importlib.import_module(name)
    except Exception:  # the worker that needs it says what is wrong
        return False
    gc.collect()
    gc.freeze()
    return len(os.listdir(THREADS)) == 1


if __name__ == "__main__":
    main()
