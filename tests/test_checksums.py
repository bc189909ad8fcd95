"""CRC-32C by either way of importing it, and what a broker's start leaves alone."""

import subprocess
import sys

import crc32c
import pytest

from harness.patience import stretched
from moldau import checksums

NINE_DIGITS = 0xE3069283
"""The check value of CRC-32C (RFC 3720, appendix B.4, has others)."""


def test_both_ways_of_importing_it_compute_the_same(monkeypatch: pytest.MonkeyPatch):
    assert checksums.crc32c is not crc32c.crc32c
    assert checksums.crc32c(b"123456789") == NINE_DIGITS
    assert checksums.crc32c(memoryview(b"6789"), checksums.crc32c(bytearray(b"12345"))) == NINE_DIGITS
    monkeypatch.setattr(checksums, "_compiled", lambda: None)
    assert checksums._function() is crc32c.crc32c


def test_a_start_imports_nothing_that_only_commands_and_repairs_need():
    unwanted = ("argparse", "zipfile", "importlib.metadata", "difflib", "shlex", "moldau.cluster.rebuilding")
    script = f"import sys, moldau.cli.main, moldau.process; print([one for one in {unwanted} if one in sys.modules])"
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60), check=True).stdout
    assert said.strip() == "[]"
