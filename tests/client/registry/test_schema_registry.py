"""The client of a schema registry: what it asks, keeps, and says when something is wrong."""

import base64
import pickle
import socket
import ssl
from pathlib import Path

import pytest

from harness.certificates import PASSWORD, Authority
from harness.proxy import Proxy
from harness.small_registry import SmallRegistry
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import JSON, Reference, Schema
from moldau.errors import (
    ConfigError,
    RegistryError,
    RegistryUnauthorized,
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaInvalid,
    SchemaNotFound,
)

TEXT = Schema('"string"')


def closed_url() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def test_a_schema_is_registered_once_and_read_by_id_once(small: SmallRegistry, registry: SchemaRegistry) -> None:
    first = registry.register("a/b-value", TEXT)
    assert registry.register("a/b-value", TEXT) == first
    assert [registry.schema(first) for _ in range(3)] == [TEXT] * 3
    assert [request.path for request in small.requests] == ["/subjects/a%2Fb-value/versions", f"/schemas/ids/{first}"]


def test_versions_and_types_and_references_are_kept(registry: SchemaRegistry) -> None:
    registry.register("text", TEXT)
    other = Schema('{"type": "object"}', JSON, (Reference("t", "text", 1),))
    number = registry.register("text", other)
    assert registry.versions("text") == [1, 2] and registry.subjects() == ["text"]
    latest = registry.version("text")
    assert (latest.subject, latest.version, latest.id, latest.schema) == ("text", 2, number, other)
    assert registry.lookup("text", TEXT).version == 1
    assert registry.referenced(other) == {"t": TEXT}


def test_what_a_schema_refers_to_is_found_after_its_subject_was_deleted(registry: SchemaRegistry) -> None:
    registry.register("text", TEXT)
    assert registry.delete_subject("text") == [1]
    with pytest.raises(SchemaNotFound):
        registry.version("text")
    assert registry.referenced(Schema('{"type": "object"}', JSON, (Reference("t", "text", 1),))) == {"t": TEXT}


def test_references_that_lead_back_are_refused(small: SmallRegistry, registry: SchemaRegistry) -> None:
    around = Schema('"string"', references=(Reference("a", "around", 1),))
    registry.register("around", around)
    with pytest.raises(SchemaInvalid, match="lead back to a"):
        registry.referenced(around)


def test_what_is_not_there_is_named(registry: SchemaRegistry, small: SmallRegistry) -> None:
    with pytest.raises(SchemaNotFound, match=f"^schema id 77 is not in the schema registry {small.url}$") as raised:
        registry.schema(77)
    assert (raised.value.status, raised.value.code) == (404, 40403)
    with pytest.raises(SchemaNotFound, match="answered 40401: not found"):
        registry.version("nowhere")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(401, 40101, RegistryUnauthorized), (403, 0, RegistryUnauthorized), (409, 409, SchemaIncompatible),
     (422, 42201, SchemaInvalid), (500, 50001, RegistryError), (302, 0, RegistryError), (404, 0, RegistryError)],
)  # fmt: skip
def test_an_answer_of_refusal_is_one_exception_of_its_own_and_is_not_asked_again(
    small: SmallRegistry, registry: SchemaRegistry, status: int, code: int, kind: type[RegistryError]
) -> None:
    small.answers = [(status, b'{"error_code": %d, "message": "no\\nway"}' % code)]
    with pytest.raises(kind) as raised:
        registry.register("text", TEXT)
    assert type(raised.value) is kind and raised.value.status == status
    assert len(small.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b'{"id": "x"}', b"{}", b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_no_registrys_is_one_sentence(
    small: SmallRegistry, registry: SchemaRegistry, body: bytes
) -> None:
    small.answers = [(200, body)]
    with pytest.raises(RegistryError, match="schema registry"):
        registry.register("text", TEXT)


def test_an_address_that_does_not_answer_is_followed_by_the_next_one(small: SmallRegistry) -> None:
    registry = SchemaRegistry([closed_url(), small.url])
    assert registry.register("text", TEXT) == 1
    small.answers = [(503, b""), (200, b"[]")]
    assert SchemaRegistry(f"{small.url},{small.url}/").subjects() == []


def test_a_registry_that_is_down_is_one_sentence_with_every_address() -> None:
    first, second = closed_url(), closed_url()
    with pytest.raises(RegistryUnavailable, match="no schema registry answers") as raised:
        SchemaRegistry([first, second]).subjects()
    assert str(raised.value).count("Connection refused") == 2 and first in str(raised.value)
    assert isinstance(raised.value, ConnectionError)


def test_a_registry_that_stays_silent_costs_the_time_out(small: SmallRegistry) -> None:
    small.answers = [(0, b"")]
    with pytest.raises(RegistryUnavailable, match=r"no answer within 0\.3 s"):
        SchemaRegistry(small.url, request_timeout_ms=300).subjects()


def test_a_plain_registry_behind_an_https_address_is_one_sentence(small: SmallRegistry) -> None:
    with pytest.raises(RegistryUnavailable, match="no schema registry answers"):
        SchemaRegistry(small.url.replace("http:", "https:")).subjects()


def test_credentials_come_from_the_setting_the_address_or_a_token(small: SmallRegistry) -> None:
    basic = f"Basic {base64.b64encode(b'ann:pa:ss').decode()}"
    SchemaRegistry(small.url, basic_auth_user_info="ann:pa:ss").subjects()
    SchemaRegistry(small.url.replace("//", "//ann:pa%3Ass@")).subjects()
    SchemaRegistry({"url": small.url, "basic.auth.user.info": "ann:pa:ss", "request.timeout.ms": "9000"}).subjects()
    SchemaRegistry(small.url, bearer_auth_token="t0k").subjects()
    assert [request.authorization for request in small.requests] == [basic, basic, basic, "Bearer t0k"]
    assert "ann" not in repr(SchemaRegistry(small.url.replace("//", "//ann:pa%3Ass@")))


def test_a_copy_on_another_machine_has_the_same_settings(small: SmallRegistry) -> None:
    pickle.loads(pickle.dumps(SchemaRegistry(small.url, basic_auth_user_info="a:b"))).subjects()
    assert small.requests[0].authorization


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"url": "localhost:8081"}, "is not an address such as"), ({"url": "file:///etc/passwd"}, "is not an address"),
     ({"url": "http://x:y"}, "is not an address"), ({"url": ""}, "needs the address"),
     ({"url": "http://x", "basic.auth.user.inf": "a:b"}, "did you mean basic.auth.user.info?"),
     ({"url": "http://x", "basic.auth.user.info": "a"}, "is not user:password"),
     ({"url": "http://x", "request.timeout.ms": "soon"}, "is not a number of ms"),
     ({"url": "http://x", "ssl.verify": "perhaps"}, "is not true or false"),
     ({"url": "http://x", "ssl.ca.location": "/nowhere.pem"}, "cannot use /nowhere.pem, which ssl.ca.location"),
     ({"url": "http://x", "basic.auth.credentials.source": "SASL_INHERIT"}, "SASL_INHERIT' is not supported; URL and"),
     ({"url": "http://x", "basic.auth.credentials.source": "USER_INFO"}, "USER_INFO needs basic.auth.user.info"),
     ({"schema.registry.url": "http://x", "schema.registry.ssl.truststore.location": "/x.jks"}, "is a JKS file")],
)  # fmt: skip
def test_a_wrong_setting_is_one_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence.replace("?", r"\?")):
        SchemaRegistry(settings)


def test_a_registry_behind_tls_is_trusted_and_shown_a_certificate(small: SmallRegistry, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.signed("server", "127.0.0.1"), password=PASSWORD)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.trusted)
    mine = authority.signed("client")
    with Proxy(small.url.removeprefix("http://"), context) as proxy:
        url = f"https://{proxy.address}"
        of_java = {
            "schema.registry.url": url,
            "schema.registry.ssl.truststore.location": str(authority.trusted),
            "schema.registry.ssl.keystore.location": str(mine.with_suffix(".p12")),
            "schema.registry.ssl.keystore.password": PASSWORD,
            "basic.auth.credentials.source": "USER_INFO",
            "schema.registry.basic.auth.user.info": "ann:secret",
        }
        SchemaRegistry(of_java).subjects()
        of_python = {"ssl_certificate_location": str(mine), "ssl_key_password": PASSWORD}
        trusting = SchemaRegistry(url, ssl_ca_location=str(authority.trusted), **of_python)
        trusting.subjects()
        assert PASSWORD not in repr(trusting)
        with pytest.raises(RegistryUnavailable, match="its certificate is not trusted"):
            SchemaRegistry(url).subjects()
    assert len(small.requests) == 2 and small.requests[0].authorization
