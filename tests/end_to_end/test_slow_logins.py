"""A thousand clients that begin to log in and never end: who logs in properly is served meanwhile, and all of them are
gone when their time is over."""

import resource
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau import Producer
from moldau.protocol import codec
from moldau.protocol.apis import SASL_HANDSHAKE
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.requests.logins import PLAIN_MODULE
from tests.end_to_end.test_abuse import resident

SLOW = 1000
TIME_S = 6
MEMORY_EACH_MAX = 32 << 10
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.server.authentication.timeout.ms": str(TIME_S * 1000),
    "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="pencil";',
    "num.partitions": "1",
}


@pytest.mark.long
def test_slow_logins_hold_up_nobody_and_end_in_time(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit[0], min(limit[1], 4 * SLOW)), limit[1]))
    broker = Broker(tmp_path, SETTINGS)
    broker.start()
    host, port = broker.address.rsplit(":", 1)
    login: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "alice",
        "sasl_password": "pencil",
    }
    handshake = codec.write_request(SASL_HANDSHAKE, 1, 7, "slow", SaslHandshakeRequest(mechanism="SCRAM-SHA-512"))
    begun = (b"", b"\0", struct.pack(">i", 400_000), handshake[:9], handshake, handshake + struct.pack(">i", 5000))
    slow = []
    try:
        with Producer(broker.address, **login) as producer:
            producer.send("t", b"first").result(stretched(30))
        before, began = resident(broker.pid), time.monotonic()
        for number in range(SLOW):
            slow.append(socket.create_connection((host, int(port)), stretched(30)))
            slow[-1].sendall(begun[number % len(begun)])
        with Producer(broker.address, **login) as producer:
            for number in range(50):
                producer.send("t", b"%d" % number).result(stretched(30))
        assert resident(broker.pid) - before < SLOW * MEMORY_EACH_MAX + (8 << 20)
        for one in slow:
            one.settimeout(stretched(TIME_S + 30))
            heard = b"more"
            while heard:
                try:
                    heard = one.recv(4096)
                except ConnectionResetError:
                    break
        assert time.monotonic() - began >= TIME_S - 1
    finally:
        for one in slow:
            one.close()
        broker.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    log = broker.log()
    assert "Traceback" not in log and "watchdog" not in log
    assert log.count("has not authenticated in time") >= 1
