"""Our clients beside those of other projects, on one broker of ours: records per second, and microseconds of the
client's processor time per record, which is what counts on a machine that the broker shares.

usage: python -m benchmarks.clients [--rows N] [--bytes N] [--codecs none,lz4,zstd] [--runs N] [--json FILE]
    [--only read|send] [--fresh] [--python confluent=PATH] [--python aiokafka=PATH] [--python kafka-python=PATH]

PATH is a Python interpreter that has that client; a client without one is left out. `--only read` leaves out the ways
that send, except `send_table`; `--only send` those that read. With `--fresh` the figures are those of a whole process,
from its start to its last record: imports, connections and metadata count, the making of what is sent does not. Of
several runs the one with the least processor time counts. A ratio above 1 says how many times less processor time our
nearest way takes.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.clients.run_one import WAYS
from benchmarks.side_by_side import moldau
from moldau.client.administration.admin import Admin

PARTITIONS = 6
RUN_SECONDS_MAX = 300
COMPARED = {
    "moldau send_table": "confluent produce", "moldau send": "confluent produce",
    "moldau send, on_delivery": "confluent produce, on_delivery", "moldau.aio send": "aiokafka send",
    "moldau tables": "confluent consume(5000), tuned", "moldau read_table": "confluent consume(5000), tuned",
    "moldau poll(5000)": "confluent consume(5000), tuned", "moldau.aio poll(5000)": "aiokafka getmany(5000)",
}  # fmt: skip
"""For each way of ours the way of another client that it is compared with."""


class Measured(NamedTuple):
    """One way of one client in one case."""

    codec: str
    keyed: str
    way: str
    rate: float
    cpu_us: float


def measure(
    way: str, python: str, address: str, topic: str, asked: argparse.Namespace, codec: str, keyed: str
) -> Measured:
    """Run a way in a process of its own."""
    program = Path(__file__).with_name("run_one.py")
    command = [python, program, way, address, topic, PARTITIONS, asked.rows, asked.bytes, codec, keyed]
    command += ["fresh"] * asked.fresh
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    if done.returncode:
        raise RuntimeError(f"{way} failed: {done.stderr[-1500:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Measured(codec, keyed, way, found["rate"], found["cpu_us"])


def cases(port: int, pythons: dict[str, str], asked: argparse.Namespace) -> list[Measured]:
    """Every way in every case; readers read what `send_table` has sent."""
    address, found = f"127.0.0.1:{port}", []
    ways = [(way, pythons.get(way.split()[0].removesuffix(".aio"))) for way in WAYS]
    for codec in asked.codecs.split(","):
        for keyed in ("plain", "keyed"):
            with Admin(address) as admin:
                topics = [f"{codec}-{keyed}-{number}-{run}" for number in range(len(ways)) for run in range(asked.runs)]
                for topic in topics:
                    admin.create_topic(topic, partitions=PARTITIONS, replication_factor=1)
                for number, (way, python) in enumerate(ways):
                    read = "send" not in way and "produce" not in way
                    if python is None or (number and asked.only == ("send" if read else "read")):
                        continue
                    runs = [
                        measure(
                            way, python, address, f"{codec}-{keyed}-{0 if read else number}-{run}", asked, codec, keyed
                        )
                        for run in range(asked.runs)
                    ]
                    found.append(min(runs, key=lambda one: one.cpu_us))
                    print(*found[-1], flush=True)
                for topic in topics:
                    admin.delete_topic(topic)
    return found


def table_of(found: list[Measured], asked: argparse.Namespace) -> Table:
    """The figures, with ratios to the compared ways."""
    table = Table(
        "codec",
        "keys",
        "way",
        "records/s",
        "CPU us/record",
        "CPU s",
        "times less CPU",
        title=f"{asked.rows:,} records of {asked.bytes} B{', fresh processes' * asked.fresh}",
    )
    by_case = {(one.codec, one.keyed, one.way): one for one in found}
    for one in found:
        other = by_case.get((one.codec, one.keyed, COMPARED.get(one.way, "")))
        ratio = "" if other is None else f"{other.cpu_us / one.cpu_us:.1f} ({other.way})"
        figures = f"{one.rate:,.0f}", f"{one.cpu_us:.2f}", f"{one.cpu_us * asked.rows / 1e6:.2f}"
        table.add_row(one.codec, one.keyed, one.way, *figures, ratio)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--codecs", default="none,lz4,zstd")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", choices=["read", "send"])
    parser.add_argument("--fresh", action="store_true", help="the figures of whole processes")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--python", action="append", default=[], metavar="CLIENT=PATH")
    asked = parser.parse_args()
    pythons = {"moldau": sys.executable, **dict(given.split("=", 1) for given in asked.python)}
    with moldau() as port:
        found = cases(port, pythons, asked)
    if asked.json:
        asked.json.write_text(json.dumps([one._asdict() for one in found], indent=1))
    Console(width=160).print(table_of(found, asked))
    return 0


if __name__ == "__main__":
    sys.exit(main())
