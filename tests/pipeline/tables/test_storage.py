"""What is said of an error of a table's files."""

import errno
import os

import pyarrow
import pytest
from deltalake.exceptions import DeltaError

from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.storage import errors_in_a_sentence, words_of

FULL = (os.strerror(errno.ENOSPC), ", so free space on its disk and try again")


def test_a_full_disk_is_said_in_the_words_of_the_system_whoever_found_it() -> None:
    with pytest.raises(OSError) as of_arrow:
        pyarrow.OSFile("/dev/full", "wb").write(b"x")
    assert words_of(of_arrow.value) == FULL
    assert words_of(DeltaError("Generic LocalFileSystem error: Unable to write (os error 28)")) == FULL
    assert words_of(OSError(errno.EIO, "Error writing bytes. Detail: 5")) == (os.strerror(errno.EIO), "")
    assert words_of(OSError("AWS Error SLOW_DOWN\n  during PutObject.")) == ("AWS Error SLOW_DOWN during PutObject", "")
    assert words_of(ValueError("no such column: os error")) == ("no such column: os error", "")


def test_a_table_on_a_disk_with_a_quota_is_one_sentence() -> None:
    said = f"^/w/t cannot be used: {os.strerror(errno.EDQUOT)}, so free space on its disk, or raise the quota of this"
    with pytest.raises(TableError, match=said), errors_in_a_sentence("/w/t"):
        raise OSError(errno.EDQUOT, "Error writing bytes to file")
