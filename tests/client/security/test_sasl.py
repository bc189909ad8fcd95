"""Our clients log in, log in again in time, and say what is wrong; a hostile server gets no more than its bound."""

import asyncio
import base64
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import moldau
from harness.patience import stretched
from harness.tiers import sized
from moldau import aio, errors, testing
from moldau.client.blocking import Caller
from moldau.client.security.brokers import Brokers
from moldau.transport.sasl.exchange import Authenticated, ServerExchange
from moldau.transport.sasl.oauthbearer import OauthbearerServer, TokenRefused
from moldau.transport.sasl.plain import PlainServer
from tests.client.security.sasl_front import PASSWORD, Front, scram

TOKEN = "the.token.of-the-test"
UNPROTECTED = {"security.protocol": "SASL_PLAINTEXT"}
LOGIN = {**UNPROTECTED, "sasl.username": "alice", "sasl.password": PASSWORD}
BY_TOKEN = {**UNPROTECTED, "sasl.mechanism": "OAUTHBEARER"}
JAAS = "org.apache.kafka.common.security."
OF_USER = f'{JAAS}plain.PlainLoginModule required username="alice" password="{PASSWORD}";'
PAUSE_S = sized(0.01, 0.01, 0)
"""Between records while logins end: without a pause, a test of some seconds keeps a processor busy."""
OF_TOKEN = f'{JAAS}scram.ScramLoginModule required\n username="token-7" password="{PASSWORD}" tokenauth="true";'


@pytest.fixture(scope="module")
def behind() -> Iterator[testing.Broker]:
    with testing.Broker() as broker:
        yield broker


def plain() -> ServerExchange:
    return PlainServer({"alice": PASSWORD})


def bearer() -> ServerExchange:
    def check(token: str) -> Authenticated:
        if token != TOKEN:
            raise TokenRefused("another one")
        return Authenticated("alice")

    return OauthbearerServer(check, lambda refused: None)


def first_use(settings: dict[str, object]) -> None:
    """Connect as these settings say."""
    with Caller(Brokers(str(settings["bootstrap.servers"]), settings)) as caller:
        caller.retrying(lambda: caller.refresh([]))

    async def run() -> None:
        async with aio.Admin(settings) as admin:
            await admin._router.refresh([])

    asyncio.run(run())


@pytest.mark.parametrize(
    ("begin", "mechanism", "settings"),
    [
        (plain, "PLAIN", LOGIN),
        (scram("SCRAM-SHA-256"), "SCRAM-SHA-256", LOGIN),
        (scram("SCRAM-SHA-512"), "SCRAM-SHA-512", LOGIN),
        (scram("SCRAM-SHA-512"), "SCRAM-SHA-512", {**UNPROTECTED, "sasl.jaas.config": OF_TOKEN}),
        (plain, "PLAIN", {**UNPROTECTED, "sasl.jaas.config": OF_USER}),
        (plain, "PLAIN", {**UNPROTECTED, "sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}),
        (bearer, "OAUTHBEARER", {**UNPROTECTED, "sasl_oauth_token_provider": lambda: TOKEN}),
        (bearer, "OAUTHBEARER", {**UNPROTECTED, "oauth_cb": lambda config: (TOKEN, time.time())}),
    ],
)
def test_each_mechanism_logs_in_on_both_kinds_of_sockets(
    behind: testing.Broker, begin: Callable[[], ServerExchange], mechanism: str, settings: dict[str, object]
) -> None:
    with Front(behind.address, begin, mechanism) as front:
        first_use({"bootstrap.servers": front.address, "sasl.mechanism": mechanism, **settings})
        assert front.logins == 2


class Provider:
    """As aiokafka has it."""

    async def token(self) -> str:
        return TOKEN


def test_tokens_come_from_an_object_with_a_method_or_from_a_file(behind: testing.Broker, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with Front(behind.address, bearer, "OAUTHBEARER") as front:
        asked = {
            "bootstrap.servers": front.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
        }
        first_use({**asked, "sasl_oauth_token_provider": Provider()})
        first_use({**asked, "sasl.oauthbearer.token.endpoint.url": (tmp_path / "token").as_uri()})
        assert front.logins == 4


def test_a_refused_login_is_an_error_of_its_own_at_once(
    behind: testing.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with Front(behind.address, plain) as front:
        wrong = {
            **LOGIN,
            "bootstrap.servers": front.address,
            "sasl.mechanism": "PLAIN",
            "sasl.password": "another-secret",
        }
        with moldau.Admin(wrong) as admin, pytest.raises(errors.SaslAuthenticationFailed) as refused:
            admin.list_topics()
        assert str(refused.value) == (
            "the broker refuses the login by PLAIN: Authentication failed: Invalid username or password"
        )
        assert isinstance(refused.value, errors.AuthenticationFailed)
        with moldau.Producer(wrong) as producer, pytest.raises(errors.SaslAuthenticationFailed):
            producer.send("t", b"x").result(20)
        with moldau.Consumer(wrong, group_id="g") as consumer:
            consumer.subscribe(["t"])
            with pytest.raises(errors.SaslAuthenticationFailed):
                consumer.poll(20_000)
        with Caller(Brokers(front.address, wrong)) as caller, pytest.raises(errors.SaslAuthenticationFailed):
            caller.retrying(lambda: caller.refresh([]))
        with moldau.Admin({**wrong, "sasl.mechanism": "SCRAM-SHA-256"}) as admin:
            with pytest.raises(errors.UnsupportedSaslMechanism, match=r"to one that it offers, PLAIN"):
                admin.list_topics()
        assert front.logins == 0
    assert "another-secret" not in caplog.text


def test_a_refused_token_and_a_provider_that_fails_say_so(behind: testing.Broker) -> None:
    with Front(behind.address, bearer, "OAUTHBEARER") as front:
        asked = {
            "bootstrap.servers": front.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
        }

        def fail() -> str:
            raise RuntimeError("no token today")

        for provider, sentence in (
            (lambda: "another", "refuses the login by OAUTHBEARER: .*invalid_token"),
            (fail, r"the function that makes tokens has failed: RuntimeError\('no token today'\)"),
            (lambda: 7, "has returned neither a text nor a tuple that begins with one"),
            (lambda: "not a token", "the token cannot be sent"),
        ):
            with moldau.Admin({**asked, "sasl_oauth_token_provider": provider}) as admin:
                with pytest.raises(errors.SaslAuthenticationFailed, match=sentence):
                    admin.list_topics()


def test_a_client_logs_in_again_before_its_login_ends(behind: testing.Broker) -> None:
    """Records of a producer with many requests on their way, and of a consumer that waits, are each delivered once."""
    with Front(behind.address, scram("SCRAM-SHA-256"), "SCRAM-SHA-256", session_ms=int(stretched(1_500))) as front:
        settings = {**LOGIN, "bootstrap.servers": front.address, "sasl.mechanism": "SCRAM-SHA-256"}
        with testing.Broker({"advertised.listeners": f"PLAINTEXT://{front.address}"}) as broker:
            front.target = broker.address
            broker.create_topic("again", partitions=1)
            with moldau.Producer(settings, linger_ms=0) as producer, moldau.Consumer(settings) as consumer:
                consumer.assign([("again", 0)])
                consumer.seek_to_beginning()
                sent, values = 0, []
                until_s = time.monotonic() + stretched(60)
                while front.logins < 9 and time.monotonic() < until_s:
                    producer.send("again", str(sent).encode())
                    sent += 1
                    values += [record.value for record in consumer.poll(20)]
                    time.sleep(PAUSE_S)
                producer.flush()
                while len(values) < sent and time.monotonic() < until_s:
                    values += [record.value for record in consumer.poll(1_000)]
    assert front.logins >= 9 and front.late == 0
    assert values == [str(number).encode() for number in range(sent)]


def test_logins_at_a_real_broker_are_renewed_on_their_connections(caplog: pytest.LogCaptureFixture) -> None:
    """The broker ends each login soon; nothing fails, and nothing is doubled."""
    caplog.set_level(logging.DEBUG)
    with testing.Broker(users={"alice": PASSWORD}, tls=True, connections_max_reauth_ms=int(stretched(1_500))) as broker:
        settings = broker.client_settings("alice", "SCRAM-SHA-256")
        broker.create_topic("renewed", partitions=1)
        with moldau.Producer(settings, linger_ms=0) as producer, moldau.Consumer(settings, group_id="g") as consumer:
            consumer.subscribe(["renewed"])
            sent, values = 0, []
            until_s = time.monotonic() + stretched(60)
            while caplog.text.count("logged in again") < 6 and time.monotonic() < until_s:
                producer.send("renewed", str(sent).encode())
                sent += 1
                values += [record.value for record in consumer.poll(20)]
                time.sleep(PAUSE_S)
            producer.flush()
            with moldau.Consumer(settings) as reader:
                reader.assign([moldau.TopicPartition("renewed", 0)])
                reader.seek_to_beginning()
                found: list[bytes | None] = []
                while len(found) < sent and time.monotonic() < until_s:
                    found += [record.value for record in reader.poll(1_000)]
    assert caplog.text.count("logged in again") >= 6
    assert found == [str(number).encode() for number in range(sent)]
    assert len(set(values)) == len(values)
    assert PASSWORD not in caplog.text and "closed the connection" not in caplog.text


def test_the_blocking_client_logs_in_again_too(behind: testing.Broker) -> None:
    with Front(behind.address, plain, session_ms=int(stretched(1_200))) as front:
        settings = {**LOGIN, "sasl.mechanism": "PLAIN"}
        with Caller(Brokers(front.address, settings)) as caller:
            until_s = time.monotonic() + stretched(30)
            while front.logins < 3 and time.monotonic() < until_s:
                caller.any().call(*_metadata())
                time.sleep(0.02)
    assert front.logins >= 3 and front.late == 0


def _metadata() -> tuple[object, object]:
    from moldau.protocol.apis import METADATA
    from moldau.protocol.messages.metadata import MetadataRequest

    return METADATA, MetadataRequest(topics=[])


class Hostile:
    """A server's part that asks for too much."""

    authenticated = None

    def __init__(self, answers: Callable[[bytes], bytes]):
        self._answers = answers

    def answer(self, message: bytes) -> bytes:
        return self._answers(message)


def first_of_scram(iterations: int) -> Callable[[bytes], bytes]:
    def answer(message: bytes) -> bytes:
        nonce = message.decode().rpartition("r=")[2]
        return f"r={nonce}x,s={base64.b64encode(b'salt').decode()},i={iterations}".encode()

    return answer


@pytest.mark.parametrize(
    ("mechanism", "answers", "sentence"),
    [
        (
            "SCRAM-SHA-256",
            first_of_scram(10_000_000),
            "asks for 10000000 iterations of SCRAM; 4096 to 1000000",
        ),
        ("SCRAM-SHA-256", first_of_scram(1), "the server asks for 1 iterations of SCRAM; 4096 to 1000000 are allowed"),
        ("SCRAM-SHA-256", lambda message: b"x" * 900_000, "is longer than the"),
        ("SCRAM-SHA-256", lambda message: b"x" * 2_000_000, "sent a reply of 2000"),
        ("OAUTHBEARER", lambda message: b"{}", "the broker's exchange does not end|refuses the token"),
    ],
)
def test_a_hostile_server_gets_no_more_than_its_bound(
    behind: testing.Broker, mechanism: str, answers: Callable[[bytes], bytes], sentence: str
) -> None:
    with Front(behind.address, lambda: Hostile(answers), mechanism) as front:
        settings = {**LOGIN, "bootstrap.servers": front.address, "sasl.mechanism": mechanism}
        settings["sasl_oauth_token_provider"] = lambda: TOKEN  # type: ignore[assignment]
        with moldau.Admin({**settings, "default.api.timeout.ms": 100}) as admin:
            with pytest.raises(errors.KafkaError, match=sentence):
                admin.list_topics()
        with Caller(Brokers(front.address, settings), timeout_ms=1_000) as caller:
            with pytest.raises((errors.KafkaError, errors.ProtocolViolation), match=sentence):
                caller.any()


def test_a_server_that_does_not_know_the_password_is_noticed(behind: testing.Broker) -> None:
    begin = first_of_scram(4096)

    def answers(message: bytes) -> bytes:
        return b"v=" + base64.b64encode(b"x" * 32) if b",p=" in message else begin(message)

    with Front(behind.address, lambda: Hostile(answers), "SCRAM-SHA-256") as front:
        with moldau.Admin({**LOGIN, "bootstrap.servers": front.address, "sasl.mechanism": "SCRAM-SHA-256"}) as admin:
            with pytest.raises(errors.SaslAuthenticationFailed, match="it is another server"):
                admin.list_topics()
