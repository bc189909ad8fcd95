"""The container file: what it copies is enough to build the package, and what it runs works, in a process of this
machine. In the long tier all of its instructions are carried out in a Debian of their own. An image is not made: that
needs a daemon and images from elsewhere.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import SOURCE, first_line
from harness.listening import free_port
from harness.patience import stretched
from tests import environments
from tests.packaging.building import ROOT, built
from tools.machines import Chroot, Machine, missing

FILE = ROOT / "deploy" / "Containerfile"
DATA = "/var/lib/moldau"
PORT = "9092"


def instructions() -> list[list[tuple[str, str]]]:
    """Those of each stage, continued lines joined."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    stages: list[list[tuple[str, str]]] = [[]]
    for line in filter(None, text.splitlines()):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append((name, rest.strip()))
    return stages[1:]


BUILD, FINAL = instructions()
OF_FINAL = dict(FINAL)


def test_it_runs_as_a_user_without_privileges_who_owns_the_volume_with_the_data() -> None:
    user, group = OF_FINAL["USER"].split(":")
    assert int(user) > 0 and int(group) > 0
    assert f"--uid {user} " in OF_FINAL["RUN"] and f"--gid {group} " in OF_FINAL["RUN"]
    assert f"install --directory --owner=moldau --group=moldau --mode=0750 {DATA}" in OF_FINAL["RUN"]
    assert (OF_FINAL["VOLUME"], OF_FINAL["WORKDIR"], OF_FINAL["EXPOSE"]) == (DATA, DATA, PORT)


def test_the_last_stage_has_no_compiler_no_sources_and_no_pip() -> None:
    assert [rest for name, rest in FINAL if name == "COPY"] == ["--from=build /opt/moldau /opt/moldau"]
    assert not any("apt-get" in rest or "pip" in rest.split() for _, rest in FINAL)
    assert any("--without-pip" in rest for _, rest in BUILD)


def test_its_shell_commands_are_sound() -> None:
    for name, rest in (*BUILD, *FINAL):
        if name == "RUN":
            subprocess.run(["sh", "-n", "-c", rest], check=True)


def test_what_it_copies_is_enough_to_build_the_package(tmp_path: Path) -> None:
    for rest in [rest for name, rest in BUILD if name == "COPY"]:
        *sources, target = shlex.split(rest)
        for source in sources:
            place = tmp_path / target / ("" if (ROOT / source).is_dir() else source)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
            else:
                shutil.copy(ROOT / source, place)
    assert built("wheel", tmp_path, MOLDAU_INTERPRETED="1").exists()


def of_this_machine(text: str, folder: Path, port: int) -> list[str]:
    """Arguments as the file has them, with another folder and port."""
    return [one.replace(DATA, str(folder)).replace(PORT, str(port)) for one in json.loads(text)]


@pytest.mark.timeout(240)
def test_the_broker_that_it_runs_serves_and_its_health_is_checked(tmp_path: Path) -> None:
    port = free_port()
    [moldau] = json.loads(OF_FINAL["ENTRYPOINT"])
    start = of_this_machine(OF_FINAL["CMD"], tmp_path, port)
    program, *check = of_this_machine(OF_FINAL["HEALTHCHECK"].partition("CMD ")[2], tmp_path, port)
    assert moldau == program == "moldau"
    address = {"MOLDAU_BOOTSTRAP_SERVER": f"localhost:{port}", "PYTHONPATH": str(SOURCE)}
    environment = {**os.environ, **address}
    python = [sys.executable, "-m", "moldau"]

    def health(seconds: float) -> int:
        return subprocess.run([*python, *check], env=environment, capture_output=True, timeout=seconds).returncode

    with subprocess.Popen(
        [*python, *start, "--port", str(port)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    ) as process:  # fmt: skip
        try:
            assert first_line(process).strip() == f"listening on 0.0.0.0:{port}"
            assert health(stretched(60)) == 0
            process.terminate()
            assert process.wait(stretched()) == 0
        finally:
            process.kill()
    assert health(stretched(120)) != 0


SERVE = """
export PATH=/opt/moldau/bin:$PATH
cd {DATA}
as_user="setpriv --reuid {uid} --regid {gid} --clear-groups env HOME={DATA}"
$as_user moldau {command} > /tmp/said 2>&1 &
for _ in $(seq 600); do grep --quiet "^listening on" /tmp/said && break; sleep 0.1; done
$as_user {check}
$as_user moldau topics create payments
kill -TERM $!
wait $!
test -d {DATA}/payments-0
! $as_user {check}
"""
"""The broker and its health check, as the user of the file."""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_its_instructions_make_a_broker_that_serves_without_privileges(tmp_path: Path) -> None:
    environments.program("debootstrap", "debootstrap")
    assert not missing(), missing()
    packages = ("python3", "python3-dev", "python3-pip", "python3-venv")
    debian = Chroot(tmp_path / "root", Machine("container", "Debian 13", "trixie", "python3", packages))
    log = tmp_path / "log"

    def run(script: str) -> None:
        try:
            debian.run(script, log)
        except subprocess.SubprocessError as failure:
            raise AssertionError(f"{script}:\n{log.read_text(errors='replace')[-3000:]}") from failure

    debian.make(log)
    run("ln --symbolic /usr/bin/python3 /usr/local/bin/python")
    folder = "/"
    for name, rest in (*BUILD, *FINAL):
        if name == "WORKDIR":
            folder = rest
            run(f"mkdir --parents {folder}")
        elif name == "RUN":
            run(f"cd {folder}; sh -ec {shlex.quote(rest)}")
        elif name == "COPY" and not rest.startswith("--from"):
            *sources, target = shlex.split(rest)
            for source in sources:
                run(f"cp --recursive /root/moldau/{source} {folder}/{target}")
    run("rm -rf /root/moldau /sources")  # the last stage has neither
    uid, gid = OF_FINAL["USER"].split(":")
    command, check = (
        shlex.join(json.loads(text)) for text in (OF_FINAL["CMD"], OF_FINAL["HEALTHCHECK"].partition("CMD ")[2])
    )
    run(SERVE.format(DATA=DATA, uid=uid, gid=gid, command=command, check=check))
    shutil.rmtree(debian.root)
