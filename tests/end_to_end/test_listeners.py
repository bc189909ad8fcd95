"""A broker with two listeners: clients of each are told the addresses of theirs, and work through it."""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.brokers import SOURCE, Broker, first_line
from harness.listening import free_port
from harness.patience import Deadline, stretched
from harness.proxy import Proxy
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer

SETTINGS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}
SECONDS_MAX = 30


def values(address: str, count: int) -> list[bytes | None]:
    """The first `count` values of the topic, in any order, read by a group of its own through that address."""
    found: list[bytes | None] = []
    deadline = Deadline(SECONDS_MAX)
    with Consumer(address, group_id=f"at {address}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["both"])
        while len(found) < count and not deadline.passed:
            found += [record.value for record in consumer.poll(500, count - len(found))]
    return found


def test_clients_of_each_listener_see_its_address_and_produce_and_consume_through_it(tmp_path: Path) -> None:
    broker = Broker(tmp_path, SETTINGS)
    broker.start()
    try:
        inside, outside = broker.addresses
        assert outside != inside
        expected = {inside: inside, outside: outside.replace("127.0.0.1", "localhost")}
        for address, advertised in expected.items():
            with Admin(address) as admin:
                assert [str(one) for one in admin.describe_cluster().brokers.values()] == [advertised]
            with Producer(address) as producer:
                producer.send("both", address.encode())
        for address in expected:
            assert set(values(address, 2)) == {inside.encode(), outside.encode()}
    finally:
        broker.stop()


def test_a_broker_with_several_listeners_prints_each_with_its_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau", "server", "start", "--data-dir", str(tmp_path / "data")]
    for name, value in SETTINGS.items():
        command += ["--set", f"{name}={value}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    try:
        line = first_line(process).strip()
    finally:
        process.terminate()
        process.communicate(timeout=stretched())
    assert re.fullmatch(r"listening on 127\.0\.0\.1:\d+ \(INSIDE\), 127\.0\.0\.1:\d+ \(OUTSIDE\)", line)


def test_clients_behind_a_proxy_connect_through_it_alone_and_those_inside_never(tmp_path: Path) -> None:
    with Proxy() as proxy:
        advertised = f"INSIDE://127.0.0.1:0,OUTSIDE://{proxy.address}"
        broker = Broker(tmp_path, {**SETTINGS, "advertised.listeners": advertised})
        broker.start()
        try:
            inside, proxy.target = broker.addresses
            with Producer(inside) as producer:
                producer.send("both", b"from inside")
            with Admin(inside) as admin:
                assert [str(one) for one in admin.describe_cluster().brokers.values()] == [inside]
            assert proxy.accepted == 0
            with Producer(proxy.address) as producer:
                producer.send("both", b"from outside")
            assert set(values(proxy.address, 2)) == {b"from inside", b"from outside"}
            assert proxy.accepted > 2, "bootstrap, leader and coordinator are reached through the proxy"
            proxy.target = f"127.0.0.1:{free_port()}"
            proxy.cut()
            assert set(values(inside, 2)) == {b"from inside", b"from outside"}
        finally:
            broker.stop()
