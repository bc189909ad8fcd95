"""The keys of tokens: from files and URLs, read again when they change, and users that log in by token."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.certificates import PASSWORD, Authority
from moldau.config import BrokerConfig
from moldau.errors import ConfigError, ErrorCode
from moldau.protocol.apis import DESCRIBE_CLUSTER
from moldau.requests import token_keys
from moldau.requests.logins import ListenerLogins
from moldau.requests.token_keys import TokenKeys
from moldau.runtime import Runtime
from moldau.transport.allowed_urls import VARIABLE
from moldau.transport.sasl.oauthbearer import OauthbearerClient, TokenRefused
from moldau.transport.token_sources import TOKEN_MODULE
from tests.transport.issuing import AUDIENCE, ISSUER, NOW_S, Issuer

from .test_logins import JAAS, Dialled, config, run

ISSUERS = Issuer("RSA")
OF_TOKENS = {
    "sasl_enabled_mechanisms": "OAUTHBEARER",
    "sasl_oauthbearer_expected_issuer": ISSUER,
    "sasl_oauthbearer_expected_audience": AUDIENCE,
    JAAS: None,
}

NO_HTTP, HALF_A_CHUNK = "SSH-2.0-issuer\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"


class Clock:
    """Time that tests move."""

    def __init__(self) -> None:
        self.ms = NOW_S * 1000
        self.set_back_ms = 0

    def now_ms(self) -> int:
        return self.ms - self.set_back_ms

    def elapsed_s(self) -> float:
        return self.ms / 1000


class Publisher:
    """Answers with a set of keys, a status, or a text that is all it sends; counts how often it was asked."""

    def __init__(self, answer: Any, certificate: Path | None = None):
        self.answer, self.asked, self.certificate = answer, 0, certificate
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.asked += 1
                answer = publisher.answer
                if isinstance(answer, str):
                    self.wfile.write(answer.encode())
                    return
                self.send_response(200 if isinstance(answer, bytes) else answer)
                if answer == 302:
                    self.send_header("Location", f"http://127.0.0.1:{publisher.port}/more")
                self.end_headers()
                self.wfile.write(answer if isinstance(answer, bytes) else b"")

            def log_message(self, *_: Any) -> None: ...

        class Server(HTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client that does not trust it goes away."""

        self._server = Server(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, password=PASSWORD)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        place = "http://127.0.0.1" if self.certificate is None else "https://localhost"
        return f"{place}:{self.port}/keys"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    made = Publisher(ISSUERS.published())
    yield made
    made.close()


def of_tokens(url: str | None, **changes: str | None) -> BrokerConfig:
    return config(**{**OF_TOKENS, "sasl_oauthbearer_jwks_endpoint_url": url, **changes})


def keys_of(url: str, clock: Clock, **changes: str | None) -> TokenKeys:
    runtime = Runtime()
    runtime.clock = clock  # type: ignore[assignment]
    return TokenKeys(of_tokens(url, **changes), runtime)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "the keys.json"
    path.write_bytes(ISSUERS.published())
    return path


def test_keys_come_from_a_file_or_a_url(file: Path, publisher: Publisher) -> None:
    async def scenario() -> None:
        for url in (file.as_uri(), publisher.url):
            assert (await keys_of(url, Clock()).check(ISSUERS.token())).user == "alice"

    asyncio.run(scenario())


def test_the_keys_may_be_those_of_one_mechanism_of_a_listener(file: Path) -> None:
    of_it = "listener.name.clients.oauthbearer.sasl.oauthbearer"
    changes: dict[str, str | None] = {
        "sasl_oauthbearer_expected_issuer": "https://another.example.org",
        "sasl_oauthbearer_expected_audience": None,
        f"{of_it}.jwks.endpoint.url": file.as_uri(),
        f"{of_it}.expected.issuer": ISSUER,
        f"{of_it}.expected.audience": AUDIENCE,
    }
    logins = ListenerLogins("CLIENTS", of_tokens(None, **changes), Runtime())
    client = OauthbearerClient(ISSUERS.token(exp=4_000_000_000, iat=None))
    login = logins.begin("OAUTHBEARER")

    async def answered() -> bytes:
        answer = login.answer(client.first())
        return answer if isinstance(answer, bytes) else await answer

    assert asyncio.run(answered()) == b""
    assert login.authenticated is not None and login.authenticated.user == "alice"


def test_the_server_of_the_keys_is_trusted_as_the_login_module_says(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    publisher = Publisher(ISSUERS.published(), authority.signed("issuer", "localhost"))
    url, jaas = publisher.url, "listener.name.clients.oauthbearer.sasl.jaas.config"
    trusting = f'{TOKEN_MODULE} required ssl.truststore.location="{authority.trusted}";'
    try:
        with pytest.raises(ConfigError, match=r"the server cannot be reached: .*, so no token could be checked"):
            ListenerLogins("CLIENTS", of_tokens(url), Runtime())
        ListenerLogins("CLIENTS", of_tokens(url, **{jaas: trusting}), Runtime())
    finally:
        publisher.close()


def test_only_urls_that_the_environment_allows_are_read(
    file: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"https://issuer.example.org, {file.as_uri()}")
    keys_of(file.as_uri(), Clock())
    for url in (publisher.url, file.as_uri() + "x", "https://issuer.example.org/"):
        with pytest.raises(ConfigError, match=VARIABLE):
            keys_of(url, Clock())
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(ConfigError, match=VARIABLE):
        keys_of(file.as_uri(), Clock())
    assert publisher.asked == 0


def test_a_new_key_is_read_when_a_token_names_it_but_not_for_each_that_does(publisher: Publisher) -> None:
    async def scenario() -> None:
        clock, issuer = Clock(), Issuer("RSA")
        publisher.answer = issuer.published()
        keys = keys_of(publisher.url, clock)
        token = issuer.token(issuer.rotate("EC"))
        publisher.answer = issuer.published()
        with pytest.raises(TokenRefused):
            await keys.check(token)
        assert publisher.asked == 1, "the keys were read a moment ago"
        clock.ms += 10_000
        assert (await keys.check(token)).user == "alice"
        for _ in range(5):
            with pytest.raises(TokenRefused):
                await keys.check(issuer.token(header={"kid": "unknown"}))
        assert publisher.asked == 2

    asyncio.run(scenario())


def test_a_new_key_is_read_although_the_wall_clock_was_set_back(publisher: Publisher) -> None:
    async def scenario() -> None:
        clock, issuer = Clock(), Issuer("RSA")
        publisher.answer = issuer.published()
        keys = keys_of(publisher.url, clock)
        token = issuer.token(issuer.rotate("EC"))
        publisher.answer = issuer.published()
        clock.set_back_ms = 35_000  # within the skew that tokens may have
        clock.ms += 10_000
        assert (await keys.check(token)).user == "alice"

    asyncio.run(scenario())


def test_keys_are_read_again_after_a_while_and_stay_in_use_if_that_fails(
    publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        clock = Clock()
        keys = keys_of(publisher.url, clock, sasl_oauthbearer_jwks_endpoint_refresh_ms="60000")
        publisher.answer = 500
        clock.ms += 60_000
        token = ISSUERS.token(exp=NOW_S + 6_000)
        for _ in range(3):
            assert (await keys.check(token)).user == "alice"
            if keys._reading is not None:
                await keys._reading
        assert publisher.asked == 2 and "the status 500. The keys read before stay in use" in caplog.text
        publisher.answer = ISSUERS.published()
        clock.ms += 200
        await keys.check(token)
        assert keys._reading is not None
        await keys._reading
        assert publisher.asked == 3 and keys._failures == 0

    asyncio.run(scenario())


def test_the_first_login_after_a_long_time_finds_no_key_that_was_withdrawn(publisher: Publisher) -> None:
    async def scenario() -> None:
        clock, issuer = Clock(), Issuer("EC")
        publisher.answer = issuer.published()
        keys = keys_of(publisher.url, clock, sasl_oauthbearer_jwks_endpoint_refresh_ms="60000")
        token = issuer.token(exp=NOW_S + 6_000)
        publisher.answer = ISSUERS.published()
        clock.ms += 120_000
        with pytest.raises(TokenRefused):
            await keys.check(token)

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [NO_HTTP, HALF_A_CHUNK])
def test_a_login_with_an_unknown_key_is_refused_while_the_keys_come_in_no_http(
    answer: str, publisher: Publisher
) -> None:
    async def scenario() -> None:
        clock = Clock()
        keys = keys_of(publisher.url, clock)
        publisher.answer = answer
        clock.ms += 10_000
        with pytest.raises(TokenRefused):
            await keys.check(ISSUERS.token(header={"kid": "unknown"}))
        assert (await keys.check(ISSUERS.token())).user == "alice" and keys._failures == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["jwks_endpoint_url", "expected_issuer", "expected_audience"])
def test_a_broker_that_could_not_check_tokens_is_refused(name: str, file: Path) -> None:
    changes = {f"sasl_oauthbearer_{name}": None}
    with pytest.raises(ConfigError, match=f"OAUTHBEARER needs sasl.oauthbearer.{name.replace('_', '.')}"):
        ListenerLogins("CLIENTS", of_tokens(file.as_uri(), **changes) if name[0] != "j" else of_tokens(None), Runtime())


@pytest.mark.parametrize(
    "url", ["http://issuer.example.org/keys", "ftp://here/keys", "keys.json", "https://", "file://other/keys", "file:"]
)
def test_a_url_that_others_could_change_on_its_way_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="must be an https:// or file:// URL"):
        TokenKeys(of_tokens(url), Runtime())


@pytest.mark.parametrize("answer", [404, 302, b"{}", b"x" * (token_keys.BYTES_MAX + 1), NO_HTTP, HALF_A_CHUNK])
def test_a_start_without_keys_is_refused(answer: Any, publisher: Publisher) -> None:
    publisher.answer = answer
    with pytest.raises(ConfigError, match="so no token could be checked"):
        TokenKeys(of_tokens(publisher.url, sasl_oauthbearer_jwks_endpoint_retry_backoff_ms="1"), Runtime())
    assert publisher.asked == token_keys.START_ATTEMPTS


def test_a_class_that_checks_tokens_is_kafka_s_own_or_refused(file: Path) -> None:
    setting = "listener.name.clients.oauthbearer.sasl.server.callback.handler.class"
    kafka = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    assert of_tokens(file.as_uri(), **{setting: kafka})
    for other in ("com.example.Any", kafka.replace("Validator", "UnsecuredValidator")):
        with pytest.raises(ConfigError, match="cannot load a class"):
            of_tokens(file.as_uri(), **{setting: other})


def test_users_log_in_by_token(file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(clients: Dialled) -> None:
        token = ISSUERS.token(exp=4_000_000_000, iat=None)
        link = await clients.log_in("OAUTHBEARER", OauthbearerClient(token))
        assert (await link.call(DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.request())).error_code == 0
        expired = ISSUERS.token(exp=1_700_000_000, iat=None)
        code, text = await clients.refusal(clients.log_in("OAUTHBEARER", OauthbearerClient(expired)))
        assert code is ErrorCode.SASL_AUTHENTICATION_FAILED and "invalid_token" in text
        assert "has expired" in caplog.text and expired not in caplog.text

    caplog.set_level("INFO")
    changes = {**OF_TOKENS, "sasl_oauthbearer_jwks_endpoint_url": file.as_uri()}
    run(scenario, tmp_path / "data", **changes)
