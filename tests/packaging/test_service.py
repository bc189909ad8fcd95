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
from harness.commands import moldau
from harness.patience import stretched
from moldau.config import broker_config
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


def section(name: str) -> configparser.SectionProxy:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit[name]


def service() -> configparser.SectionProxy:
    return section("Service")


def test_a_wrong_setting_is_not_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"{SETTINGS.read_text().replace('/var/lib/moldau', str(tmp_path))}\nnum.partitons=3\n")
    done = moldau("server", "start", file)
    assert (service()["Restart"], str(done.returncode)) == ("on-failure", service()["RestartPreventExitStatus"])
    assert done.stderr.startswith("error: ") and "num.partitions" in done.stderr


def test_a_start_that_fails_at_once_is_given_up_and_one_that_waits_for_zookeeper_is_not() -> None:
    limit = section("Unit")
    seconds, starts = int(limit["StartLimitIntervalSec"]), int(limit["StartLimitBurst"])
    pause = int(service()["RestartSec"])
    waits = broker_config({})[0].zookeeper_session_timeout_ms / 1000
    assert starts * (1 + pause) < seconds < starts * (waits + pause)


def test_its_command_tells_systemd_when_it_serves_and_writes_only_below_its_folder(tmp_path: Path) -> None:
    program_path, *arguments = shlex.split(service()["ExecStart"])
    assert program_path == "/opt/moldau/bin/moldau" and service()["Type"] == "notify"
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
