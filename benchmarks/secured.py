"""What security costs: TLS beside Apache Kafka, and requests of a broker with access rights and quotas beside those of
one without, in turns.

usage: python -m benchmarks.secured [--turns 6] [--alone] [--before REVISION]

`--alone`: without Kafka. `--before`: one-record requests of a broker without security beside that revision's.
"""

import argparse
import contextlib
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import broker_load
from benchmarks.broker_load import Case, Wire
from benchmarks.earlier import source_of
from benchmarks.side_by_side import AS_SHIPPED, KAFKA_SETTINGS, ours, ratio
from harness import apache_kafka
from harness.listening import free_port
from moldau import Admin
from moldau.admin import Acl

ACLS = 1_000
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin",
}
LIMIT = 1e12
"""A quota that nobody reaches: it is measured all the same."""


@contextlib.contextmanager
def over_tls(certificates: Path) -> Iterator[None]:
    """Connections of the load use TLS."""
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    context.check_hostname = False  # the load connects to an address
    Wire.tls = context
    try:
        yield
    finally:
        Wire.tls = None


def secured_cases(port: int) -> Iterator[Case]:
    yield broker_load.produce(port, 80)
    yield from broker_load.fetches(port, (1_000_000,))


def beside_kafka(*, alone: bool) -> Iterator[tuple[Case, Case | None]]:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        make = [sys.executable, "-m", "moldau", "certificates", "make", name, "--host", "localhost"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.enter_context(over_tls(folder))
        store = {"ssl.keystore.location": str(folder / "localhost.pem")}
        mine = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL", **store}
        port = _port(stack.enter_context(_without_tls(lambda: ours(mine))).address)
        if alone:
            yield from ((case, None) for case in secured_cases(port))
            return
        secure = free_port()
        theirs = {
            **KAFKA_SETTINGS,
            "listeners": f"PLAINTEXT://127.0.0.1:{{port}},SSL://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{{controller}}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            **store,
        }
        stack.enter_context(_without_tls(lambda: apache_kafka.running(theirs, AS_SHIPPED)))
        yield from zip(secured_cases(port), secured_cases(secure), strict=True)


@contextlib.contextmanager
def _without_tls(start: Callable[[], contextlib.AbstractContextManager[Any]]) -> Iterator[Any]:
    """Start something that is looked at without TLS until it is ready."""
    context, Wire.tls = Wire.tls, None
    with start() as started:
        Wire.tls = context
        yield started


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def guarded_by_much(address: str) -> None:
    """A thousand access rights, and quotas of every kind of client."""
    with Admin(address) as admin:
        refused = admin.create_acls(
            [Acl("topic", f"topic-{number}", f"User:user-{number}", "read") for number in range(ACLS)]
        )
        assert set(refused.values()) == {None}
        limits = {"producer_byte_rate": LIMIT, "consumer_byte_rate": LIMIT, "request_percentage": LIMIT}
        assert set(admin.alter_client_quotas({(("client-id", None),): limits}).values()) == {None}


def in_turns(turns: int, first: int, second: int) -> tuple[Case, Case, list[float]]:
    """One-record requests at two ports; each turn asks both, in changing order."""
    rates: dict[int, list[Case]] = {first: [], second: []}
    for turn in range(turns):
        for port in (first, second) if turn % 2 else (second, first):
            rates[port].append(broker_load.produce(port, 1))
    shares = [b.value / a.value for a, b in zip(rates[first], rates[second], strict=True)]

    def median(port: int) -> Case:
        return sorted(rates[port], key=lambda case: case.value)[turns // 2]

    return median(first), median(second), shares


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secured", description="What security costs.")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--before", metavar="REVISION")
    asked = parser.parse_args()
    for mine, theirs in beside_kafka(alone=asked.alone):
        beside = f"Kafka {theirs.value:,.0f}, ratio {ratio(mine, theirs)}" if theirs else ""
        print(f"TLS, {mine.name}: {mine.value:,.0f} {mine.unit}  {beside}", flush=True)
    with ours() as plain, ours({**GUARDED, "super.users": "User:ANONYMOUS"}) as guarded:
        guarded_by_much(guarded.address)
        tell("with access rights and quotas", *in_turns(asked.turns, _port(plain.address), _port(guarded.address)))
    if asked.before:
        with source_of(asked.before) as source, ours(source=source) as old, ours() as new:
            tell(f"since {asked.before}", *in_turns(asked.turns, _port(old.address), _port(new.address)))
    return 0


def tell(what: str, first: Case, second: Case, shares: list[float]) -> None:
    share = statistics.median(shares)
    print(f"{second.name}, {what}: {first.value:,.0f} -> {second.value:,.0f} {second.unit}, median ratio {share:.3f}")


if __name__ == "__main__":
    sys.exit(main())
