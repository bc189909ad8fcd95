"""Tokens of an authorization server: asked for once as OAuth says, used until most of their time is over."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.certificates import PASSWORD, Authority
from moldau.client.administration.admin import AdminSettings
from moldau.client.security.security_settings import SecuritySettings
from moldau.client.security.tokens import token_source
from moldau.client.settings import read_settings
from moldau.errors import ConfigError, KafkaError, NetworkException, SaslAuthenticationFailed
from moldau.transport import token_sources
from moldau.transport.allowed_urls import VARIABLE
from moldau.transport.token_sources import ClientCredentials, Token, Tokens, extensions_in, source_at

SECRET = "the secret:of the test"


NOBODY_ASKS = ClientCredentials(None, None, None)


@contextmanager
def answering_in_turn(answers: list[object]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """As `answering`, with the next of these answers each time, and 503 while there is none."""
    with answering(200, lambda: answers.pop(0) if answers else None) as served:
        yield served


@contextmanager
def answering(
    status: int, answer: object, certificate: Path | None = None
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An authorization server that gives this answer, over TLS if it has a certificate; its URL, and what it was
    asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append({"body": body, "login": self.headers["Authorization"]})
            said = answer() if callable(answer) else answer
            self.send_response(503 if said is None else status)
            self.send_header("Location", "http://elsewhere.example/")
            self.end_headers()
            self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            pass

    class Server(HTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that does not trust it goes away."""

    server = Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, password=PASSWORD)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        place = "http://127.0.0.1" if certificate is None else "https://localhost"
        yield f"{place}:{server.server_port}/token", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def source(url: str, **named: object) -> Tokens:
    settings: SecuritySettings = read_settings(
        AdminSettings,
        "Admin",
        ("a:1",),
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_endpoint_url": url,
            "sasl_oauthbearer_client_credentials_client_id": "me",
            "sasl_oauthbearer_client_credentials_client_secret": SECRET,
            **named,
        },
    )
    return token_source(settings, None)


def test_a_token_is_asked_for_once_and_used_for_most_of_its_time() -> None:
    with answering(200, {"access_token": "abc", "expires_in": 3600}) as (url, asked):
        tokens = source(url, sasl_oauthbearer_scope="read write", sasl_oauthbearer_extensions="cluster=one, pool=two")
        assert [tokens.token() for _ in range(3)] == [Token("abc", {"cluster": "one", "pool": "two"})] * 3
    [only] = asked
    assert only["body"] == "grant_type=client_credentials&scope=read+write"
    assert base64.b64decode(only["login"].removeprefix("Basic ")) == b"me:the+secret%3Aof+the+test"


def test_a_token_without_an_end_is_asked_for_with_each_login() -> None:
    with answering(200, {"access_token": "abc"}) as (url, asked):
        tokens = source(url)
        tokens.token(), tokens.token()
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("status", "answer", "kind", "sentence"),
    [
        (
            401,
            {"error": "invalid_client"},
            SaslAuthenticationFailed,
            "a token to the client me: invalid_client",
        ),
        (400, b"<html>", SaslAuthenticationFailed, "refuses a token to the client me: HTTP 400"),
        (200, {"token": "abc"}, SaslAuthenticationFailed, "refuses a token to the client me: HTTP 200"),
        (302, {"access_token": "abc"}, SaslAuthenticationFailed, "refuses a token to the client me: HTTP 302"),
        (503, b"", NetworkException, "does not issue a token: HTTP 503"),
    ],
)
def test_a_server_that_gives_none_is_one_sentence_without_the_secret(
    status: int, answer: object, kind: type[KafkaError], sentence: str
) -> None:
    with answering(status, answer) as (url, _), pytest.raises(kind, match=sentence) as refused:
        source(url).token()
    assert SECRET not in str(refused.value) and SECRET not in repr(Token("abc"))


class Moments:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        return self.s


def test_a_token_stays_in_use_until_its_end_while_its_server_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    moments = Moments()
    monkeypatch.setattr(token_sources, "monotonic_s", moments)
    answers: list[object] = [{"access_token": "one", "expires_in": 100}]
    with answering_in_turn(answers) as (url, asked):
        tokens = source(url)
        assert tokens.token().text == "one"
        moments.s += 80
        assert [tokens.token().text for _ in range(3)] == ["one"] * 3
        assert len(asked) == 2, "it is not asked again with each login"
        moments.s += 6
        assert tokens.token().text == "one" and len(asked) == 3
        answers.append({"access_token": "two", "expires_in": 100})
        moments.s += 6
        assert tokens.token().text == "two" and len(asked) == 4
        moments.s += 100
        with pytest.raises(NetworkException, match="does not issue a token: HTTP 503"):
            tokens.token()
    assert "The token before stays in use until its end" in caplog.text
    assert SECRET not in caplog.text and "one" not in caplog.text.replace("connection", "")


def test_the_login_module_may_say_who_asks_and_whom_it_trusts(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    options = {
        "clientId": "me",
        "clientSecret": SECRET,
        "scope": "read",
        "extension_pool": "two",
        "ssl.truststore.location": str(authority.trusted_in_pkcs12()),
    }
    own = authority.signed("issuer", "localhost")
    with answering(200, {"access_token": "abc", "expires_in": 9}, own) as (url, asked):
        assert source_at(url, NOBODY_ASKS, extensions_in(options), options).token() == Token("abc", {"pool": "two"})
        del options["ssl.truststore.location"]
        with pytest.raises(NetworkException, match=r"does not issue a token: .*unable to get local issuer certificate"):
            source_at(url, NOBODY_ASKS, {}, options).token()
    [only] = asked
    assert only["body"] == "grant_type=client_credentials&scope=read"
    with pytest.raises(ConfigError, match=r"cannot use /nowhere, which ssl.truststore.location names: No such file"):
        source_at(
            url, NOBODY_ASKS, {}, {**options, "ssl.truststore.location": "/nowhere", "ssl.truststore.type": "PEM"}
        )


def test_a_server_that_is_down_is_asked_again() -> None:
    with answering(200, {}) as (url, _):
        pass
    with pytest.raises(NetworkException, match="does not issue a token: Connection refused") as refused:
        source(url).token()
    assert refused.value.retriable


def test_only_servers_and_files_that_the_environment_allows_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "https://issuer.example.org/token")
    assert source("https://issuer.example.org/token")
    for url in ("file:///etc/passwd", "https://issuer.example.org/token/", "http://localhost:1/"):
        with pytest.raises(ConfigError, match=VARIABLE):
            source(url)
