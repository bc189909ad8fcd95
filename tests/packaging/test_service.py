"""The unit of systemd: its command runs as it says, and systemd itself finds nothing wrong with it."""

import configparser
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import SOURCE
from harness.patience import stretched
from tests.environments import program
from tests.packaging.building import ROOT

UNIT = ROOT / "deploy" / "moldau.service"
SETTINGS = ROOT / "deploy" / "server.properties"
EXPOSURE_MAX = 2.0
"""systemd's own measure: 10 is a service that may do everything."""
FORBID_CODE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "moldau", *sys.argv[1:]])
"""
"""MemoryDenyWriteExecute: PR_SET_MDWE, since Linux 6.3; an older kernel refuses it, and nothing is forbidden."""


def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit["Service"]


def test_its_command_tells_systemd_when_it_serves_and_writes_only_below_its_folder(tmp_path: Path) -> None:
    moldau, *arguments = shlex.split(service()["ExecStart"])
    assert moldau == "/opt/moldau/bin/moldau" and service()["Type"] == "notify"
    settings = SETTINGS.read_text()
    assert service()["StateDirectory"] == "moldau" and "log.dirs=/var/lib/moldau\n" in settings
    file, data = tmp_path / "server.properties", tmp_path / "data"
    file.write_text(settings.replace("/var/lib/moldau", str(data)).replace(":9092", ":0"))
    arguments = [one.replace("/etc/moldau/server.properties", str(file)) for one in arguments]
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(stretched(60))
        with subprocess.Popen(
            [sys.executable, "-c", FORBID_CODE, *arguments],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "NOTIFY_SOCKET": path},
        ) as process:
            try:
                assert manager.recv(100) == b"READY=1"
                process.terminate()
                assert manager.recv(100) == b"STOPPING=1"
                assert process.wait(stretched()) == 0
            finally:
                process.kill()
    assert {one.name for one in tmp_path.iterdir()} == {"server.properties", "data", "notify"}


@pytest.mark.check
def test_systemd_finds_nothing_wrong_with_it_and_little_that_it_could_do(tmp_path: Path) -> None:
    analyze = program("systemd-analyze", "systemd")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/moldau/bin/moldau", shutil.which("true") or "/bin/true"))
    verified = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    ours = [line for line in (verified.stdout + verified.stderr).splitlines() if UNIT.stem in line]
    assert (verified.returncode, ours) == (0, [])
    rated = subprocess.run([analyze, "security", "--offline=yes", unit], capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", rated.stdout)
    assert found is not None, rated.stdout + rated.stderr
    assert float(found[1]) <= EXPOSURE_MAX, rated.stdout
