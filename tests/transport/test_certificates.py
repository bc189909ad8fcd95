"""The TLS contexts of listeners from their settings: what is read, and what is refused in a sentence."""

import contextlib
import shutil
import ssl
import time
from pathlib import Path

import pytest

from harness.certificates import PASSWORD, Authority
from moldau.config import BrokerConfig, broker_config
from moldau.errors import ConfigError
from moldau.handlers.security.certificates import tell_of_ends
from moldau.transport.certificates import context_of_listener, context_to_brokers
from moldau.transport.listeners import ListenerTls


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def own(authority: Authority) -> Path:
    return authority.signed("broker", "localhost")


def settings(**given: object) -> BrokerConfig:
    return broker_config({f"ssl.{name.replace('_', '.')}": str(value) for name, value in given.items()})[0]


def subject_shown(server: ssl.SSLContext, authority: Authority) -> str:
    """Shakes hands with that context in memory; returns the name in its certificate."""
    client = ssl.create_default_context(cafile=str(authority.trusted))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    certificate = ours.getpeercert()
    assert certificate is not None
    return str(certificate["subject"][0][0][1])


def test_a_pem_file_has_the_certificate_and_its_locked_key(authority: Authority, own: Path) -> None:
    both = {"key_password": PASSWORD, "keystore_password": "of the file, which PEM does not have"}
    for password in ({"key_password": PASSWORD}, {"keystore_password": PASSWORD}, both):
        context = context_of_listener(settings(keystore_location=own, **password), "none")
        assert subject_shown(context, authority) == "broker"


def test_a_pkcs12_file_has_them_too_also_if_the_type_is_javas_default(authority: Authority, own: Path) -> None:
    bundle = own.with_suffix(".p12")
    nameless = shutil.copy(bundle, own.with_name("keystore"))
    for location, more in ((bundle, {}), (nameless, {}), (nameless, {"keystore_type": "JKS"})):
        given = settings(keystore_location=location, keystore_password=PASSWORD, **more)
        assert subject_shown(context_of_listener(given, "none"), authority) == "broker"


@pytest.mark.parametrize("between", ["\n", " "])
def test_certificate_and_key_may_be_text_in_lines_or_in_one_line(authority: Authority, own: Path, between: str) -> None:
    key, certificate = own.read_text().replace("\n", between).split(f"-----{between}-----BEGIN CERT")
    given = settings(
        keystore_key=key + "-----",
        keystore_certificate_chain="-----BEGIN CERT" + certificate,
        key_password=PASSWORD,
        truststore_certificates=authority.trusted.read_text().replace("\n", between),
    )
    context = context_of_listener(given, "requested")
    assert subject_shown(context, authority) == "broker"
    assert context.verify_mode == ssl.CERT_OPTIONAL
    assert PASSWORD not in repr(given) and "PRIVATE" not in repr(given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "it has no certificate: set ssl.keystore.location"),
        ({"keystore_key": "k"}, "ssl.keystore.certificate.chain is missing"),
        ({"keystore_certificate_chain": "c"}, "ssl.keystore.key is missing"),
        ({"keystore_location": "{own}", "keystore_key": "k"}, "are both set: give the file or the text"),
        (
            {"keystore_certificate_chain": "c", "keystore_key": "k", "keystore_type": "PKCS12"},
            "ssl.keystore.type is PKCS12, but text is always PEM",
        ),
        ({"keystore_certificate_chain": "c", "keystore_key": "k"}, "cannot use the certificates in ssl.keystore"),
        ({"keystore_location": "{own}"}, "it is not PEM, or the password is wrong"),
        ({"keystore_location": "{own}", "key_password": "wrong"}, "it is not PEM, or the password is wrong"),
        ({"keystore_location": "{own}", "keystore_type": "PKCS12"}, "cannot use .*broker.pem, which ssl.keystore.loc"),
        ({"keystore_location": "nowhere.pem"}, "cannot use nowhere.pem, .* No such file or directory"),
        ({"keystore_location": "nowhere"}, "cannot use nowhere, .* No such file or directory"),
        ({"keystore_location": "{folder}/old.jks"}, "keytool -importkeystore -srckeystore .*old.jks -destkeystore"),
        ({"keystore_location": "{folder}/key.pem"}, "cannot use .*key.pem, .* it has no certificate"),
        ({"keystore_location": "{folder}/authority.pem"}, "cannot use .*authority.pem, .* it has no key"),
        ({"keystore_location": "{folder}/noise"}, "ssl.keystore.type must be PEM or PKCS12, and .*noise does not look"),
        ({"enabled_protocols": "TLSv1.1"}, "'TLSv1.1' is no version of TLS that ssl takes: TLSv1.2 and TLSv1.3 are"),
        ({"enabled_protocols": ""}, "'' is no version of TLS"),
        ({"cipher_suites": "NONE_SUCH"}, "ssl.cipher.suites names no cipher suite that Python has"),
        ({"cipher_suites": "TLS_AES_256_GCM_SHA"}, "ssl.cipher.suites names no cipher suite that Python has"),
        (
            {"cipher_suites": "TLS_AES_256_GCM_SHA384", "enabled_protocols": "TLSv1.2"},
            "ssl.cipher.suites is of TLS 1.3, which ssl.enabled.protocols leaves out",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(
    own: Path, given: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.with_name("old.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    own.with_name("noise").write_bytes(b"\1noise")
    own.with_name("key.pem").write_text(own.read_text().partition("-----BEGIN CERT")[0])
    monkeypatch.chdir(own.parent)
    filled = {name: value.format(own=own, folder=own.parent) for name, value in given.items()}
    with pytest.raises(ConfigError, match=sentence) as refused:
        context_of_listener(settings(**filled), "none")
    assert "\n" not in str(refused.value)


def test_clients_are_not_asked_for_certificates_that_nobody_has_signed(own: Path) -> None:
    given = settings(keystore_location=own, key_password=PASSWORD)
    with pytest.raises(ConfigError, match=r"ssl.client.auth is requested, .* set ssl.truststore.location"):
        context_of_listener(given, "requested")


def test_a_listener_has_settings_of_its_own_and_names_itself_where_they_are_wrong(
    authority: Authority, own: Path
) -> None:
    config, _ = broker_config(
        {
            "listeners": "IN://:1,SSL://:2",
            "listener.security.protocol.map": "IN:PLAINTEXT,SSL:SSL",
            "inter.broker.listener.name": "IN",
            "ssl.keystore.location": str(own),
            "ssl.key.password": "another",
            "listener.name.ssl.ssl.key.password": PASSWORD,
            "listener.name.ssl.ssl.client.auth": "requested",
            "ssl.truststore.location": str(authority.trusted),
        }
    )
    mine = ListenerTls("SSL", "SSL", config)
    assert (mine.client_auth, mine.context().verify_mode) == ("requested", ssl.CERT_OPTIONAL)
    with pytest.raises(ConfigError, match=r"^the listener IN cannot use TLS: cannot use "):
        ListenerTls("IN", "SSL", config)


def test_the_name_in_a_clients_certificate_becomes_its_principal_by_the_rules_of_the_listener(
    authority: Authority, own: Path
) -> None:
    given = {
        "ssl.keystore.location": str(own),
        "ssl.key.password": PASSWORD,
        "listener.name.plaintext.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U",
    }
    config, _ = broker_config(given)
    certificate = ssl.PEM_cert_to_DER_cert("-----BEGIN CERT" + own.read_text().partition("-----BEGIN CERT")[2])
    assert ListenerTls("PLAINTEXT", "SSL", config).principal(certificate) == "User:BROKER"
    assert ListenerTls("PLAINTEXT", "SSL", config).principal(None) is None
    assert ListenerTls("PLAINTEXT", "SASL_SSL", config).principal(certificate) is None
    wrong, _ = broker_config({**given, "ssl.principal.mapping.rules": "RULE:("})
    with pytest.raises(ConfigError, match=r"the listener OTHER cannot use TLS: ssl.principal.mapping.rules has"):
        ListenerTls("OTHER", "SSL", wrong)


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_a_broker_of_several_must_trust_a_certificate_like_its_own(
    authority: Authority, own: Path, tmp_path: Path, client_auth: str
) -> None:
    other = Authority(tmp_path, "other")
    given = {
        "listener.security.protocol.map": "PLAINTEXT:SSL",
        "ssl.keystore.location": str(own),
        "ssl.key.password": PASSWORD,
        "ssl.client.auth": client_auth,
        "ssl.truststore.location": str(other.trusted),
    }
    alone, _ = broker_config(given)
    assert ListenerTls("PLAINTEXT", "SSL", alone).to_brokers() is None
    assert ListenerTls("PLAINTEXT", "SSL", alone, True).to_brokers() is not None
    several = {"broker.id": "1", "zookeeper.connect": "here:1"}
    with pytest.raises(ConfigError, match=r"could not connect to another one with the same \(unable to get local"):
        ListenerTls("PLAINTEXT", "SSL", broker_config(given | several)[0], True)
    trusting = {"ssl.truststore.location": str(authority.trusted)}
    context = ListenerTls("PLAINTEXT", "SSL", broker_config(given | several | trusting)[0], True).to_brokers()
    assert context is not None and context.check_hostname


def test_a_listener_with_sasl_asks_for_certificates_only_if_its_own_setting_says_so(
    authority: Authority, own: Path
) -> None:
    given = {
        "ssl.keystore.location": str(own),
        "ssl.key.password": PASSWORD,
        "ssl.client.auth": "required",
        "ssl.truststore.location": str(authority.trusted),
    }
    assert ListenerTls("PLAINTEXT", "SASL_SSL", broker_config(given)[0]).client_auth == "none"
    own_setting = {"listener.name.plaintext.ssl.client.auth": "required"}
    assert ListenerTls("PLAINTEXT", "SASL_SSL", broker_config(given | own_setting)[0]).client_auth == "required"


def test_an_authority_in_between_is_trusted_without_the_one_that_signed_it(tmp_path: Path) -> None:
    """As by Java, for which every certificate in a trust store is an anchor."""
    between = Authority(tmp_path, "between", signed_by=Authority(tmp_path, "root"))
    given = settings(keystore_location=between.signed("broker", "localhost"), key_password=PASSWORD)
    config = broker_config({"ssl.truststore.location": str(between.trusted)})[0]
    client, server = context_to_brokers(config), context_of_listener(given, "none")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for side in sides * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert sides[0].getpeercert()


@pytest.mark.parametrize(
    ("suites", "versions"),
    [
        ("TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256", (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
    ],
)
def test_suites_of_tls_1_3_alone_leave_no_older_version(
    own: Path, suites: str, versions: tuple[ssl.TLSVersion, ssl.TLSVersion]
) -> None:
    given = settings(keystore_location=own, key_password=PASSWORD, cipher_suites=suites)
    context = context_of_listener(given, "none")
    assert (context.minimum_version, context.maximum_version) == versions
    older = [one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]
    assert versions[0] == ssl.TLSVersion.TLSv1_3 or older == ["ECDHE-RSA-AES128-GCM-SHA256"]


def test_a_certificate_that_has_expired_is_named_and_does_not_replace_one_that_has_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    used, broker = tmp_path / "used.pem", {"broker.id": "1", "zookeeper.connect": "here:1"}
    given = {
        "listener.security.protocol.map": "PLAINTEXT:SSL",
        "ssl.keystore.location": str(used),
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(authority.trusted),
    }
    shutil.copy(authority.signed("broker", "localhost"), used)
    config, now_s = broker_config(given)[0], time.time()
    tls = ListenerTls("PLAINTEXT", "SSL", config, now_ms=lambda: int(now_s * 1000) + 120_000)
    assert abs(tls.valid_until_s - now_s - 365 * 86_400) < 600
    for days, said in (
        (300, ""),
        (359.5, "PLAINTEXT expires in 5 days"),
        (364.5, "in less than a day"),
        (366, "has exp"),
    ):
        caplog.clear()
        tell_of_ends([tls], int((now_s + days * 86_400) * 1000))
        assert said in caplog.text and bool(said) == bool(caplog.text)

    shutil.copy(authority.signed("broker", "localhost", days=0), used)
    with pytest.raises(ConfigError, match="the new certificate has expired, or is not valid yet, and the one before"):
        tls.reload(config)
    expired = ListenerTls("PLAINTEXT", "SSL", config, now_ms=lambda: int(now_s * 1000) + 120_000)
    expired.reload(config)  # in place of another one that has
    with pytest.raises(ConfigError, match=r"\(certificate has expired\): ssl.keystore.location needs a cert"):
        ListenerTls("PLAINTEXT", "SSL", broker_config(given | broker)[0], True)
