"""Tokens of an authorization server: asked for once as OAuth says, used until most of their time is over."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from moldau.client.administration.admin import AdminSettings
from moldau.client.security.security_settings import SecuritySettings
from moldau.client.security.tokens import Token, Tokens, token_source
from moldau.client.settings import read_settings
from moldau.errors import ConfigError, KafkaError, NetworkException, SaslAuthenticationFailed
from moldau.transport.allowed_urls import VARIABLE

SECRET = "the secret:of the test"


@contextmanager
def answering(status: int, answer: object) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An authorization server that gives this answer; its URL, and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append({"body": body, "login": self.headers["Authorization"]})
            self.send_response(status)
            self.send_header("Location", "http://elsewhere.example/")
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
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
