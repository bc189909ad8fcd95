"""`moldau doctor`: what is wrong, and what to do about it."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Option
from moldau.cli.options import Json, pairs
from moldau.cli.output import note, print_json
from moldau.errors import ConfigError
from moldau.names import counted

if TYPE_CHECKING:
    from moldau.cli.doctor.examining import Examination

BOOTSTRAP_DEFAULT = "localhost:9092"
BOOTSTRAP_VARIABLE = "MOLDAU_BOOTSTRAP_SERVER"
MARKS = {"error": "ERROR  ", "warning": "WARNING", "note": "note   "}


def doctor(
    bootstrap_server: Annotated[
        str,
        Option("--bootstrap-server", "-b", metavar="HOST:PORT", help="Brokers that run, separated by commas."),
    ] = "",
    config: Annotated[
        Path | None,
        Option("--config", metavar="FILE", help="The settings of a broker of this machine, which may be stopped."),
    ] = None,
    setting: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="One setting of that broker; repeatable.")
    ] = None,
    log: Annotated[
        list[Path] | None, Option("--log", metavar="FILE", help="A log of the broker, for the bundle; repeatable.")
    ] = None,
    bundle: Annotated[
        Path | None, Option("--bundle", metavar="FILE.tar.gz", help="Write a file for a bug report, without secrets.")
    ] = None,
    as_json: Json = False,
) -> int:
    """
    Find faults of a broker or a cluster, and say how to repair them.

    With -b it asks running brokers: whether this machine reaches their advertised addresses, whether all replicas are
    in sync, and whether brokers and log folders work. With --config it checks a broker of this machine, running or
    stopped: its settings, disks, log folders, file descriptors, and its ZooKeeper. Give both to check everything.
    Nothing is changed.

    The exit code is 1 if there is an error, else 0.

    Examples:

      moldau doctor -b kafka1:9092

      moldau doctor -b localhost:9092 --config server.properties

      moldau doctor --config server.properties --log broker.log --bundle report.tar.gz
    """
    from moldau.cli.doctor.checks.diagnosis import has_errors
    from moldau.cli.doctor.examining import examine

    if bundle is None and log:
        raise ConfigError("--log needs --bundle: a log is only written into a bundle")
    if bundle is not None and bundle.exists():
        raise ConfigError(f"{bundle} exists already: give --bundle another name")
    properties = _properties(config, setting or [])
    with _silent():  # what fails is in what was found
        examination = asyncio.run(examine(_brokers(bootstrap_server, properties is None), properties))
    if bundle is not None:
        from moldau.cli.doctor.bundle import write_bundle
        from moldau.client.security.brokers import settings_in

        write_bundle(bundle, examination, properties, settings_in(bootstrap_server), log or [])
        note(f"wrote {bundle}")
    _print(examination, as_json)
    return 1 if has_errors(examination.found) else 0


def _brokers(given: str, is_needed: bool) -> str | None:
    """The brokers to ask, with the settings of `--command-config`; None for none."""
    from moldau.client.security.brokers import alike

    if given or not is_needed:
        return given or None
    return alike(os.environ.get(BOOTSTRAP_VARIABLE) or BOOTSTRAP_DEFAULT, given)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    logger = logging.getLogger("moldau")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _properties(file: Path | None, settings: list[str]) -> dict[str, str] | None:
    if file is None and not settings:
        return None
    from moldau.config import read_properties

    return {**(read_properties(file) if file is not None else {}), **pairs(settings, "--set")}


def _print(examination: "Examination", as_json: bool) -> None:
    if as_json:
        from moldau.cli.doctor.bundle import as_json as data_of

        print_json(data_of(examination))
        return
    for one in examination.found:
        print(f"{MARKS[one.severity]} {one.area}: {one.problem}\n        {one.advice}")
    counts = [counted(sum(one.severity == severity for one in examination.found), str(severity)) for severity in MARKS]
    print(f"Looked at {', '.join(examination.examined)}: {', '.join(counts)}.", flush=True)
