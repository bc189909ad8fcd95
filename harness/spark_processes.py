"""Spark's Python processes among those of the system, by their command lines."""

DAEMONS = (b"pyspark.daemon", b"moldau.pipeline.worker_daemon")
"""Modules of the daemon that forks workers: PySpark's own, and that of our sessions. Workers keep its command line."""


def is_of_daemon(command: bytes) -> bool:
    """Whether a command line is that of a daemon, or of a worker that it has forked."""
    return any(daemon in command for daemon in DAEMONS)
