"""Whether a log is served, and what its callers are answered when it is not.

An `OSError` while a log is served takes it offline for good: every later call raises `KafkaError(KAFKA_STORAGE_ERROR)`,
and no failed fsync is tried again. The one exception is a process without a free descriptor: that call raises the same
error, which clients retry, and the log stays online unless its files were being changed.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from moldau.errors import ErrorCode, KafkaError
from moldau.log import failures
from moldau.names import TopicPartition
from moldau.runtime import out_of_descriptors

OnFailure: TypeAlias = Callable[[OSError], object]

logger = logging.getLogger(__name__)


class Serving:
    """The state of one log. `on_failure`: called once, with the error that takes the log offline."""

    __slots__ = ("_folder", "_on_failure", "_tp", "offline")

    def __init__(self, folder: Path, tp: TopicPartition, on_failure: OnFailure | None = None):
        self.offline = False
        self._folder = folder
        self._tp = tp
        self._on_failure = on_failure

    def check(self) -> None:
        """Raises `KafkaError` (KAFKA_STORAGE_ERROR) if the log is offline."""
        if self.offline:
            raise self.storage_error()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Wraps work on the log's files that is not on the path of every request: an `OSError` in it fails the log, and
        a damaged batch (CORRUPT_MESSAGE) is reported to the operator."""
        self.check()
        try:
            yield
        except OSError as error:
            raise self.fail(error) from error
        except KafkaError as error:
            if error.code is ErrorCode.CORRUPT_MESSAGE:
                failures.damaged(self._folder, error)
            raise

    @contextmanager
    def changing_files(self) -> Iterator[None]:
        """As `guard`, for a change of files that cannot be left half done: also where only a descriptor is missing, the
        log goes offline. (Its folder does not: no disk has failed.)"""
        try:
            yield
        except OSError as error:
            raise self.take_offline(error) from error

    def fail(self, error: OSError) -> KafkaError:
        """Take the log offline, unless only a descriptor was missing; returns what to answer.

        `on_failure` takes the whole log folder offline. A log that was let go before (its topic is deleted) fails
        alone: its files may disappear while requests still use them."""
        if not self.offline and out_of_descriptors(error):
            return failures.no_descriptor(self._folder, error)
        return self.take_offline(error)

    def take_offline(self, error: OSError) -> KafkaError:
        """As `fail`, for errors after which the log's state in memory is no longer that of its files."""
        if not self.offline:
            self.offline = True
            logger.error("%s is offline: %s", self._folder, error)
            if self._on_failure is not None:
                self._on_failure(error)
        return self.storage_error()

    def storage_error(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log folder of {self._tp} failed or is closed")
