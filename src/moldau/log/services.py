"""What the logs of one log folder share: the ports, their open files, and what reaches the folder."""

from collections.abc import Callable
from dataclasses import dataclass

from moldau.log.deletion import Doomed
from moldau.log.files import OpenFiles
from moldau.log.serving import OnFailure
from moldau.runtime import Runtime


@dataclass(frozen=True)
class LogServices:
    """`on_failure`: takes the whole folder offline. `write_recovery_points`: writes the checkpoint of the folder's
    recovery points and flushes it; blocks and raises `OSError`."""

    runtime: Runtime
    files: OpenFiles
    doomed: Doomed
    on_failure: OnFailure | None = None
    write_recovery_points: Callable[[], object] | None = None
    write_log_starts: Callable[[], object] | None = None

    @classmethod
    def alone(cls, runtime: Runtime) -> "LogServices":
        """For a log that is opened without a log folder."""
        return cls(runtime, OpenFiles(runtime.disk), Doomed(runtime.disk))
