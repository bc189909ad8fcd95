"""The settings of a client about security: combinations that are refused, and secrets that are shown nowhere."""

import dataclasses
import threading
from pathlib import Path

import pytest

import moldau
from moldau.client.administration.admin import AdminSettings
from moldau.client.settings import described, read_settings
from moldau.errors import ConfigError

SSL = {"security_protocol": "SSL"}
SASL = {"security_protocol": "SASL_SSL"}
TOKENS = {"sasl_mechanism": "OAUTHBEARER"}
URL = "sasl_oauthbearer_token_endpoint_url"
SECRET = "the-secret-of-the-test"


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"ssl_ca_location": "ca"}, "ssl_ca_location is given without security_protocol, and would protect nothing"),
        ({"ssl_key_password": "x"}, "ssl_key_password is given without security_protocol"),
        ({**SSL, "ssl_ca_location": "a", "ssl_truststore_location": "b"}, "are both given, and say the same"),
        ({**SSL, "ssl_ca_location": "a", "ssl_cafile": "b"}, "was given ssl_ca_location twice, also as ssl_cafile"),
        ({**SSL, "ssl_key_location": "a"}, "ssl_key_location needs ssl_certificate_location as well"),
        ({**SSL, "ssl_keystore_key": "a"}, "ssl_keystore_key needs ssl_keystore_certificate_chain as well"),
        ({**SSL, "ssl_context": "a"}, "ssl_context is not an ssl.SSLContext of Python's"),
        ({"security_protocol": "SASL_SSL"}, "security_protocol=SASL_SSL needs sasl_mechanism: PLAIN, SCRAM-SHA-256"),
        ({**SASL, "sasl_mechanism": "GSSAPI"}, "Kerberos is not supported; PLAIN, SCRAM-SHA-256"),
        ({**SASL, "sasl_mechanism": "MD5"}, "sasl_mechanism='MD5' is not one of PLAIN, SCRAM-SHA-256"),
        ({"sasl_password": SECRET}, "sasl_password is given without security_protocol"),
        ({"security_protocol": "TLS"}, "is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
    ],
)
def test_a_wrong_combination_is_one_sentence(named: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_settings(AdminSettings, "Admin", ("a:1",), named)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"ssl_ca_location": "/nowhere/ca.pem"}, "cannot use /nowhere/ca.pem, which ssl.ca.location names: No such"),
        ({"ssl_keystore_location": "/kafka.jks"}, "keytool -importkeystore -srckeystore /kafka.jks -destkeystore"),
        ({"ssl_truststore_location": "{folder}/old"}, "ssl.truststore.location is a JKS file, which only Java reads"),
        ({"ssl_ca_location": "{folder}/empty"}, "which ssl.ca.location names"),
        ({"ssl_ca_pem": "x"}, "cannot use the certificates in ssl.truststore.certificates"),
        ({"ssl_certificate_pem": "x", "ssl_key_pem": SECRET}, "ssl.keystore.key and ssl.keystore.certificate.chain"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "'TLSv1.1' is no version of TLS that ssl takes"),
        ({"ssl_cipher_suites": "x"}, "ssl.cipher.suites names no cipher suite"),
        ({"ssl_endpoint_identification_algorithm": "x"}, "must be HTTPS or empty, not 'x'"),
    ],
)
def test_a_client_refuses_at_once_what_no_connection_could_use(
    named: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "old").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    (tmp_path / "empty").write_bytes(b"")
    given = {name: value.format(folder=tmp_path) for name, value in named.items()}
    for client in (moldau.Admin, moldau.Producer, moldau.Consumer):
        with pytest.raises(ConfigError, match=sentence) as refused:
            client("a:1", **SSL, **given)  # type: ignore[call-arg, arg-type]
        assert SECRET not in str(refused.value)
    assert not [one for one in threading.enumerate() if one.name.startswith("moldau-")]


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"sasl_mechanism": "PLAIN", "sasl_username": "a"}, "PLAIN needs sasl.username and sasl.password"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": f"{SECRET}\0"}, "have no NUL"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": f"a {SECRET}"}, "sasl.jaas.config must be one login module"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": "com.x.Made required;"}, "has the login module com.x.Made"),
        (
            {"sasl_mechanism": "plain", "sasl_jaas_config": "x.ScramLoginModule required;"},
            "has a login module for SCRAM-SHA-256 or SCRAM-SHA-512, and sasl.mechanism is PLAIN",
        ),
        ({"sasl_mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs tokens: give sasl.oauthbearer.token.endpoint.url"),
        ({**TOKENS, "sasl_oauth_token_provider": 7}, "neither a function nor an object with a method token"),
        ({**TOKENS, URL: "http://elsewhere/token"}, "must be an https or file URL: the secret is sent there"),
        ({**TOKENS, URL: "https://elsewhere/token"}, "needs sasl.oauthbearer.client.credentials.client.id"),
        ({**TOKENS, URL: "file:///x", "sasl_oauthbearer_extensions": "x"}, "is a list of name=value, and 'x' is not"),
        (
            {**TOKENS, URL: "https://x/", "sasl_oauthbearer_client_id": "a", "sasl_oauthbearer_client_secret": SECRET,
             "https_ca_location": "/nowhere"},
            "cannot use /nowhere, which https.ca.location names: No such file",
        ),
    ],
)  # fmt: skip
def test_a_login_that_cannot_be_made_is_refused_at_once(named: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refused:
        moldau.Admin("a:1", **SASL, **named)
    assert SECRET not in str(refused.value)


def test_security_settings_of_a_file_have_no_effect_if_it_asks_for_none() -> None:
    given = {
        "security.protocol": "PLAINTEXT",
        "ssl.ca.location": "/nowhere",
        "ssl.key.password": "x",
        "ssl.crl.location": "x",
    }
    moldau.Admin({"bootstrap.servers": "a:1", **given}).close()


def test_no_text_about_settings_has_a_secret() -> None:
    secrets = [field.name for field in dataclasses.fields(AdminSettings) if field.metadata["secret"]]
    assert {"ssl_key_password", "ssl_keystore_key", "ssl_keystore_password", "ssl_truststore_password"} <= {*secrets}
    for name in secrets:
        made = AdminSettings("a:1", security_protocol="SSL", **{name: SECRET})
        assert SECRET not in repr(made) + str(made) and name not in repr(made)
        with pytest.raises(ConfigError) as refused:
            read_settings(AdminSettings, "Admin", ("a:1",), {**SSL, name: [SECRET]})
        assert str(refused.value) == f"{name} is not text"
    assert "ssl_key_password (ssl.key.password), default None" in described(AdminSettings)
