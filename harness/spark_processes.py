"""Spark's Python processes among those of the system, by their command lines."""

DAEMONS = (b"pyspark.daemon", b"moldau.pipeline.worker_daemon")
"""Modules of the daemon that forks workers: PySpark's own, and that of our sessions. Workers keep its command line."""


def is_of_daemon(command: bytes) -> bool:
    """Whether a command line (/proc/PID/cmdline) is that of a daemon, or of a worker that it has forked. The JVM's has
    the name of the module too, in a setting."""
    _, *arguments = command.split(b"\0")
    return arguments[:1] == [b"-m"] and arguments[1] in DAEMONS
