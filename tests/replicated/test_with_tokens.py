"""Three brokers that log in at each other by the tokens of an authorization server, which is down for a while."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import moldau
from harness.patience import SECONDS, wait_until
from harness.replicated_brokers import ReplicatedBrokers
from tests.transport.issuing import AUDIENCE, ISSUER, Issuer

LASTS_S = 4
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = "secret-of-brokers"


class Server:
    """Issues tokens of the user `broker`; 503 while it is down."""

    def __init__(self) -> None:
        self.issuer = Issuer("EC")
        self.issued = self.refused = 0
        self.is_down = False
        self.url = ""


@contextmanager
def issuing() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if state.is_down:
                state.refused += 1
                self.send_response(503)
                self.end_headers()
                return
            now = int(time.time())
            token = state.issuer.token(sub="broker", iat=now, exp=now + LASTS_S)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": token, "expires_in": LASTS_S}).encode())
            state.issued += 1

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/token"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def settings(server: Server, keys: Path) -> dict[str, str]:
    """As Kafka's documents have them."""
    keys.write_bytes(server.issuer.published())
    of_it = "listener.name.brokers.oauthbearer"
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.brokers.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{of_it}.sasl.jaas.config": f"{MODULE} required clientId='broker' clientSecret='{SECRET}' scope='kafka';",
        f"{of_it}.sasl.oauthbearer.token.endpoint.url": server.url,
        f"{of_it}.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"{of_it}.sasl.oauthbearer.expected.issuer": ISSUER,
        f"{of_it}.sasl.oauthbearer.expected.audience": AUDIENCE,
    }


@pytest.mark.check
def test_brokers_replicate_over_tokens_that_end_and_find_together_again_when_the_server_was_down(
    tmp_path: Path,
) -> None:
    with issuing() as server:
        server.is_down = True
        cluster = ReplicatedBrokers(tmp_path, settings(server, tmp_path / "keys.json"))
        try:
            cluster.start()
            assert wait_until(lambda: server.refused >= 3, SECONDS), "brokers wait for the server"
            server.is_down = False
            sent = []
            with moldau.Producer(cluster.address, acks="all") as producer:

                def send_until(enough: int) -> None:
                    while server.issued < enough:
                        sent.append(producer.send("replicated", b"%d" % len(sent), partition=0).result(SECONDS))
                        time.sleep(0.02)

                send_until(6)
                server.is_down, refused = True, server.refused
                assert wait_until(lambda: server.refused > refused, SECONDS), "tokens have ended"
                server.is_down = False
                send_until(server.issued + 4)
            cluster.wait_until_whole()
            with moldau.Consumer(cluster.address) as consumer:
                consumer.assign([("replicated", 0)])
                assert consumer.end_offsets([("replicated", 0)])["replicated", 0] == len(sent)
        finally:
            cluster.stop()
    for broker in cluster.brokers.values():
        log = broker.log()
        assert "Traceback" not in log and SECRET not in log and "eyJ" not in log
