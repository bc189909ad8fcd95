"""What a task says when its portion cannot be written."""

import errno
import os

import pytest

from moldau.pipeline.loading import writing
from moldau.pipeline.loading.target import Target
from moldau.pipeline.loading.tasks import TaskPortion, write_portion
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.tables.storage import location


def test_a_full_disk_is_one_sentence_that_says_which_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")

    monkeypatch.setattr(writing, "TopicWriter", full)
    places = location("/w/t"), location("/w/_quarantine/t")
    target = Target("t", "", "read_committed", "abc", "lz4", *places, "date", None, {})
    outcome = write_portion(TaskPortion(0, target, [OffsetRange("t", 1, 10, 20)]), 0)
    assert outcome.failure == (
        f"t-1 from offset 10 to 20 could not be loaded: {os.strerror(errno.ENOSPC)} (/w/t), so free space on its disk"
        " and try again."
    )
    assert not outcome.again
