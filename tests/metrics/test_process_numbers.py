"""What the operating system says of this process, also where it lets it open no file."""

import errno
import os
import resource

import pytest

from moldau.metrics.process_numbers import process_numbers


def test_a_process_without_a_free_descriptor_has_all_of_them_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alert on open files goes by this number: it must not vanish then."""

    def refused(*_: object) -> list[str]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 0 < process_numbers()["process_open_fds"] < limit
    monkeypatch.setattr(os, "listdir", refused)
    assert process_numbers()["process_open_fds"] == process_numbers()["process_max_fds"] == limit
