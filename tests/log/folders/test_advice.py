"""An error of a disk says what to do about it, and does not call a full disk broken."""

import errno
import os

import pytest

from moldau.log.folders.advice import remedy


@pytest.mark.parametrize(
    ("number", "said", "not_said"),
    [
        (errno.EIO, "Repair its disk", "space"),
        (errno.ENOSPC, "Free space", "Repair"),
        (errno.EDQUOT, "raise the quota", "Repair"),
        (errno.EROFS, "remount it writable", "Repair"),
        (errno.ENODEV, "Mount its disk", "Repair"),
        (errno.EACCES, "Let the broker's user read and write it", "Repair"),
        (errno.EMFILE, "Raise the limit of open files", "Repair"),
        (errno.ENFILE, "Raise the machine's limit of open files", "Repair"),
        (errno.EPERM, "Let the broker's user read and write it", "Repair"),
    ],
)
def test_the_remedy_is_that_of_the_error(number: int, said: str, not_said: str) -> None:
    line = remedy(OSError(number, os.strerror(number)))
    assert said in line and not_said not in line


def test_an_error_without_a_number_is_of_the_disk() -> None:
    assert remedy(OSError("gone")) == "Repair its disk"
