"""The schema registry beside Apicurio: requests for `GET /schemas/ids/N` per processor second, time until the first
answer, and the start with 10,000 subjects.

usage: python -m benchmarks.registry [--requests 20000] [--connections 4] [--starts 3] [--subjects 10000] [--alone]

Both are asked by the same program, one after the other. Ours keeps its schemas in a topic, Apicurio in memory, as its
quickest storage. The processor time is that of the registry's process; both are warm.
"""

import argparse
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.side_by_side import ours
from harness import apicurio
from harness.brokers import first_line
from moldau import Admin, Producer

SCHEMAS = 100
REGISTER_S = 30
TICKS = os.sysconf("SC_CLK_TCK")


class Registry(NamedTuple):
    url: str
    pid: int


Started = Callable[[], contextlib.AbstractContextManager[Registry]]


@contextlib.contextmanager
def moldau_registry(brokers: str, topic: str = "_schemas") -> Iterator[Registry]:
    command = [sys.executable, "-m", "moldau", "registry", "start", "-b", brokers, "--port", "0", "--topic", topic]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield Registry(first_line(process).removeprefix("listening on ").strip(), process.pid)
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def apicurio_registry() -> Iterator[Registry]:
    with (
        tempfile.TemporaryDirectory() as folder,
        apicurio.running(Path(folder), "", apicurio.as_shipped()) as (url, pid),
    ):
        yield Registry(url, pid)


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def register(url: str) -> list[int]:
    """Register schemas, and return their ids."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=REGISTER_S)
    ids = []
    for number in range(SCHEMAS):
        fields = [{"name": f"f{at}", "type": "long"} for at in range(10)]
        schema = json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        path = f"{where.path}/subjects/s{number}/versions"
        answer: dict[str, int] = {}
        give_up = time.monotonic() + REGISTER_S
        while "id" not in answer:
            assert time.monotonic() < give_up, answer
            connection.request("POST", path, json.dumps({"schema": schema}), headers)
            answer = json.loads(connection.getresponse().read())
        ids.append(answer["id"])
    connection.close()
    return ids


def ask(url: str, ids: list[int], requests: int, connections: int) -> None:
    """Ask for schemas by id on several connections that stay open."""
    where = urlsplit(url)

    def one() -> None:
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=REGISTER_S)
        for number in range(requests // connections):
            connection.request("GET", f"{where.path}/schemas/ids/{ids[number % len(ids)]}")
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
        connection.close()

    threads = [threading.Thread(target=one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def rate(registry: Registry, requests: int, connections: int) -> float:
    """Requests per second of the registry's processor time."""
    ids = register(registry.url)
    ask(registry.url, ids, requests, connections)  # warms up: Java compiles what runs often
    before = processor_s(registry.pid)
    ask(registry.url, ids, requests, connections)
    return requests / max(processor_s(registry.pid) - before, 1 / TICKS)


def start_s(started: Started, path: str) -> float:
    """From the command to the first answer."""
    began = time.monotonic()
    with started() as registry:
        where = urlsplit(registry.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port)
        connection.request("GET", f"{where.path}{path}")
        assert connection.getresponse().status == 200
        took = time.monotonic() - began
        connection.close()
    return took


def fill(brokers: str, topic: str, subjects: int) -> None:
    """A topic as a registry writes it, with one version of each subject."""
    with Admin(brokers) as admin:
        admin.create_topic(topic, partitions=1, replication_factor=1, configs={"cleanup.policy": "compact"})
    with Producer(brokers) as producer:
        for number in range(1, subjects + 1):
            key = {"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}
            fields = [{"name": f"f{at}", "type": "long"} for at in range(10)]
            schema = json.dumps({"type": "record", "name": f"R{number}", "fields": fields}, separators=(",", ":"))
            value = {"subject": f"s{number}", "version": 1, "id": number, "schema": schema, "deleted": False}
            producer.send(topic, json.dumps(value).encode(), json.dumps(key, separators=(",", ":")).encode())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.registry", description="The registry beside Apicurio.")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--subjects", type=int, default=10_000)
    parser.add_argument("--alone", action="store_true", help="without Apicurio")
    asked = parser.parse_args()
    with ours() as broker:
        kinds: dict[str, Started] = {"Moldau": lambda: moldau_registry(broker.address)}
        if not asked.alone:
            kinds["Apicurio"] = apicurio_registry
        rates, starts = {}, {}
        for name, started in kinds.items():
            with started() as registry:
                rates[name] = rate(registry, asked.requests, asked.connections)
            starts[name] = statistics.median(start_s(started, "/subjects") for _ in range(asked.starts))
            print(
                f"{name}: {rates[name]:,.0f} requests per processor second, {starts[name]:.2f} s to start", flush=True
            )
        if not asked.alone:
            print(
                f"ratio: {rates['Moldau'] / rates['Apicurio']:.2f} times the requests, "
                f"{starts['Apicurio'] / starts['Moldau']:.1f} times as fast to start"
            )
        fill(broker.address, "many", asked.subjects)
        took = start_s(lambda: moldau_registry(broker.address, "many"), "/subjects")
        print(f"Moldau with {asked.subjects:,} subjects: {took:.2f} s to start")
    return 0


if __name__ == "__main__":
    sys.exit(main())
