"""Installs this checkout on other machines: chroots of Debian releases that it makes and removes (`make machines`).

usage: machines.py [MACHINE ...]    these machines, or all of them; needs root and debootstrap
       machines.py --list           what there is
       machines.py --write          also put the table of results into docs/installation.md

Each machine has a compiler and a Python of its own, and runs its steps on what is committed here: `pip install .`, a
first message with warnings as errors, `make quick`, on one of them also `make demo`. A chroot trusts the certificate
authorities that this machine trusts, and every package is verified. Mounts and processes are in namespaces of their
own, so nothing is left when a step ends. The output of each step goes to a file in build/machines.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "machines"
PAGE = ROOT / "docs" / "installation.md"
TABLE = re.compile(r"(?<=<!-- machines -->\n).*?(?=<!-- end of machines -->)", re.DOTALL)
AUTHORITIES = Path("usr/local/share/ca-certificates")
"""Where Debian keeps the authorities that an administrator added to its own."""
STEP_SECONDS_MAX = 1800

ENTER = """
root=$1
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
exec chroot "$root" /bin/bash -euo pipefail -c "$2"
"""
"""Runs as the first process of its namespaces. The mounts end with the last process in there."""

FIRST_MESSAGE = """
import moldau
from moldau.testing import Broker

with Broker() as broker:
    with moldau.Producer(broker.bootstrap_servers) as producer:
        producer.send("greetings", key="Praha", value="ahoj")
    with moldau.Consumer(broker.bootstrap_servers, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("greetings")
        record = next(iter(consumer))
        assert (record.key, record.value) == (b"Praha", b"ahoj"), record
"""

SETUP = """
    make setup
    if [ "$EXPECTED" = compiled ]; then test ! -s build/columns.log; fi  # no warning
    [[ $(.venv/bin/moldau --version) == *"columns $EXPECTED"* ]]
"""
STEPS = {
    "pip install .": """
        cp --recursive . /root/sources
        cd /root/sources
        "$PYTHON" -m venv /root/user
        /root/user/bin/pip install --quiet .
        [[ $(/root/user/bin/moldau --version) == *"columns $EXPECTED"* ]]
    """,
    "first message": f"""
        cd /
        /root/user/bin/python -X dev -W error - <<'PROGRAM'
{FIRST_MESSAGE}
PROGRAM
    """,
    "make setup": SETUP,
    "make demo": "make demo",
    "make quick": f"{SETUP}\nmake quick",
}
"""Shell scripts by name, which run in the same clone one after the other."""


@dataclass(frozen=True)
class Machine:
    """`suite` is the name of the Debian release; `packages` are installed with apt, `python` with them."""

    name: str
    system: str
    suite: str
    python: str
    packages: tuple[str, ...]
    steps: tuple[str, ...] = ("pip install .", "first message", "make quick")
    columns: str = "compiled"


GCC = ("make", "gcc", "libc6-dev", "python3-dev", "python3-venv")
MACHINES = (
    Machine(
        "debian-12-without-gcc", "Debian 12", "bookworm", "python3", ("make", "python3-venv"),
        steps=("pip install .", "first message", "make setup"), columns="interpreted",
    ),
    Machine(
        "debian-13", "Debian 13", "trixie", "python3", (*GCC, "openjdk-21-jre-headless"),
        steps=("pip install .", "first message", "make demo", "make quick"),
    ),
    Machine("debian-sid", "Debian sid", "sid", "python3", GCC),
    Machine("debian-sid-3.15", "Debian sid", "sid", "python3.15", (*GCC, "python3.15-dev", "python3.15-venv")),
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What a machine is and what its steps took in seconds; None for the step that failed, the last one then."""

    system: str
    compiler: str
    python: str
    columns: str
    seconds: Mapping[str, float | None]
    day: date

    @property
    def failed(self) -> bool:
        return None in self.seconds.values()


class Chroot:
    """A Debian system in a folder."""

    def __init__(self, root: Path, machine: Machine):
        self.root = root
        self.machine = machine

    def make(self, log: Path) -> None:
        """Install the system, its packages and a clone of this checkout. Raises `CalledProcessError`."""
        include = "--include=ca-certificates"
        command = ["debootstrap", "--force-check-gpg", "--variant=minbase", include, self.machine.suite, str(self.root)]
        with log.open("wb") as output:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=True)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        for file in (Path("/") / AUTHORITIES).glob("*.crt"):
            shutil.copy(file, self.root / AUTHORITIES)
        # A mirror may be a snapshot, whose indexes are signed but older than they should be.
        update = "apt-get update --quiet --option Acquire::Check-Valid-Until=false"
        install = f"apt-get install --quiet --yes --no-install-recommends {' '.join(self.machine.packages)}"
        self.run(f"update-ca-certificates; {update}; {install}", log)
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, self.root / "root/moldau"], check=True)

    def run(self, script: str, log: Path) -> None:
        """Run a script in the clone, or in / before there is one. Raises `SubprocessError`."""
        namespaces = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
        inside = f"cd /root/moldau 2>/dev/null || cd /\n{script}"
        environment = {
            "HOME": "/root",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt",  # pip knows only its own authorities otherwise
            "PYTHON": self.machine.python,
            "EXPECTED": self.machine.columns,
        }
        with log.open("ab") as output:
            subprocess.run(
                ["unshare", *namespaces, "bash", "-euc", ENTER, "enter", self.root, inside],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=STEP_SECONDS_MAX,
                check=True,
            )

    def said(self, command: str) -> str:
        """What the command prints there."""
        log = self.root / "said"
        log.unlink(missing_ok=True)
        self.run(command, log)
        return log.read_text().strip()


def try_out(machine: Machine) -> Result:
    """Make the machine and run its steps until one fails."""
    folder = Path(tempfile.mkdtemp(prefix="moldau-machine-"))
    try:
        chroot = Chroot(folder / "root", machine)
        chroot.make(LOGS / f"{machine.name}.system.log")
        compiler = chroot.said("gcc -dumpfullversion 2>/dev/null || echo")
        python = chroot.said("$PYTHON -c 'import platform; print(platform.python_version())'")
        seconds: dict[str, float | None] = {}
        for step in machine.steps:
            log = LOGS / f"{machine.name}.{step.strip(' .').replace(' ', '-')}.log"
            log.unlink(missing_ok=True)
            started = time.monotonic()
            try:
                chroot.run(STEPS[step], log)
            except subprocess.SubprocessError:
                seconds[step] = None
                print(f"{machine.name}: {step} FAILED, see {log.relative_to(ROOT)}", flush=True)
                break
            seconds[step] = time.monotonic() - started
            print(f"{machine.name}: {step} {seconds[step]:.0f} s", flush=True)
        return Result(
            machine.system, f"gcc {compiler}" if compiler else "none", python, machine.columns, seconds, date.today()
        )
    finally:
        shutil.rmtree(folder)


def table(results: Sequence[Result]) -> str:
    """The results in Markdown."""
    lines = [
        f"| system | compiler | Python | columns | {' | '.join(f'`{step}`' for step in STEPS)} | date |",
        f"|{'---|' * (5 + len(STEPS))}",
    ]
    for result in results:
        cells = [result.system, result.compiler, result.python, result.columns]
        cells += [cell(result.seconds, step) for step in STEPS]
        lines.append(f"| {' | '.join([*cells, result.day.isoformat()])} |")
    return "\n".join(lines) + "\n"


def cell(seconds: Mapping[str, float | None], step: str) -> str:
    if step not in seconds:
        return "-"
    taken = seconds[step]
    return "FAILED" if taken is None else f"{taken:.0f} s"


def missing() -> str:
    """What this machine lacks, as a sentence. Empty if nothing."""
    if os.geteuid():
        return "making chroots needs root: run it with sudo, or in a container as root"
    absent = [program for program in ("debootstrap", "unshare", "git") if shutil.which(program) is None]
    return f"{absent[0]} was not found: install it, for example with 'apt-get install {absent[0]}'" if absent else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="install this checkout in chroots of Debian releases")
    names = [machine.name for machine in MACHINES]
    parser.add_argument("machine", nargs="*", help=f"all of them, if none of {', '.join(names)} is named")
    parser.add_argument("--list", action="store_true", help="the machines and their steps")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/installation.md; for all machines"
    )
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.machine if name not in names]:
        parser.error(f"there is no machine {unknown[0]}: there are {', '.join(names)}")
    if asked.machine and asked.write:
        parser.error("--write replaces the whole table: name no machine with it")
    if asked.list:
        for machine in MACHINES:
            print(f"{machine.name:<24}{', '.join(machine.steps)}")
        return 0
    if lacks := missing():
        print(f"moldau: {lacks}.", file=sys.stderr)
        return 1
    if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT).returncode:
        print("moldau: the machines get what is committed; the changes in the working tree are not part of it.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with the clean-up of an exception
    LOGS.mkdir(parents=True, exist_ok=True)
    results = []
    for machine in MACHINES:
        if not asked.machine or machine.name in asked.machine:
            try:
                results.append(try_out(machine))
            except subprocess.SubprocessError as error:
                print(f"moldau: {machine.name} could not be made, see build/machines: {error}", file=sys.stderr)
                return 1
    print(table(results), end="")
    if asked.write:
        PAGE.write_text(TABLE.sub(lambda _: table(results), PAGE.read_text()))
    return 1 if any(result.failed for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
