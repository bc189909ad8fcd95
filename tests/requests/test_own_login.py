"""How a broker logs in at the others: as the settings say, or not at all."""

from pathlib import Path

import pytest

from moldau.config import BrokerConfig
from moldau.errors import ConfigError, SaslAuthenticationFailed
from moldau.requests.logins import PLAIN_MODULE
from moldau.requests.own_login import login_at_brokers

from .test_logins import JAAS, SHA256, USERS, config

OF_TOKENS = "listener.name.clients.oauthbearer"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
BY_TOKEN: dict[str, str | None] = {
    "sasl_mechanism_inter_broker_protocol": "OAUTHBEARER",
    "sasl_enabled_mechanisms": "PLAIN,OAUTHBEARER",
}


def member(**changes: str | None) -> BrokerConfig:
    """Of one of several brokers, that logs in at the others by PLAIN."""
    return config(
        zookeeper_connect="here:1", broker_id="1", **{"sasl_mechanism_inter_broker_protocol": "PLAIN", **changes}
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sasl_mechanism_inter_broker_protocol": None}, "is GSSAPI; brokers log in at each other by one of PLAIN"),
        ({"sasl_mechanism_inter_broker_protocol": SHA256}, "sha-256.sasl.jaas.config must be one login module"),
        ({JAAS: f'{PLAIN_MODULE} required user_a="secret";'}, f"{JAAS} must be {PLAIN_MODULE} required username="),
        (
            {"sasl_mechanism_inter_broker_protocol": SHA256, "sasl_jaas_config": USERS},
            "scram-sha-256.sasl.jaas.config must be org.apache.kafka.common.security.scram.ScramLoginModule required",
        ),
    ],
)
def test_a_broker_that_could_not_log_in_at_others_is_refused(changes: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        login_at_brokers(member(**changes))
    assert sentence in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_broker_logs_in_at_others_as_the_user_of_the_login_module() -> None:
    assert login_at_brokers(member()).exchange().first() == b"\0x\0y"
    scram_module = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="b" password="p";'
    by_scram = {"sasl_mechanism_inter_broker_protocol": SHA256, "sasl_jaas_config": scram_module}
    login = login_at_brokers(member(**by_scram))
    assert login.mechanism == SHA256 and login.exchange().first().startswith(b"n,,n=b,r=")


def test_a_mechanism_that_the_other_brokers_would_refuse_is_none_to_log_in_by() -> None:
    changes = {"sasl_enabled_mechanisms": "SCRAM-SHA-256", "listener.name.clients.sasl.enabled.mechanisms": SHA256}
    with pytest.raises(ConfigError, match=r"is PLAIN, and the listener CLIENTS does not take it: add it to sasl.enab"):
        login_at_brokers(member(**changes))


def test_a_broker_logs_in_by_the_token_in_a_file_that_may_change(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    file.write_text("abc\n")
    name = f"{OF_TOKENS}.sasl.oauthbearer.token.endpoint.url"
    login = login_at_brokers(member(**BY_TOKEN, **{name: file.as_uri()}))
    assert login.mechanism == "OAUTHBEARER"
    assert login.exchange().first() == b"n,,\1auth=Bearer abc\1\1"
    file.write_text("def")
    jaas = {f"{OF_TOKENS}.sasl.jaas.config": f"{MODULE} required extension_pool='two';"}
    login = login_at_brokers(member(**BY_TOKEN, **jaas, sasl_oauthbearer_token_endpoint_url=file.as_uri()))
    assert login.exchange().first() == b"n,,\1auth=Bearer def\1pool=two\1\1"
    file.write_text("no token")
    with pytest.raises(SaslAuthenticationFailed, match="the token cannot be sent: a token of OAUTHBEARER has"):
        login.exchange()
    file.unlink()
    with pytest.raises(SaslAuthenticationFailed, match=r"cannot read the token in .*: No such file or directory"):
        login.exchange()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "this broker has no token to log in with at the others: set sasl.oauthbearer.token.endpoint.url"),
        ({"sasl_oauthbearer_token_endpoint_url": "http://there/token"}, "must be an https or file URL"),
        ({"sasl_oauthbearer_token_endpoint_url": "https:///token"}, "must be an https or file URL"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://there/token"}, "needs sasl.oauthbearer.client.credentials"),
        (
            {f"{OF_TOKENS}.sasl.jaas.config": f"{PLAIN_MODULE} required clientSecret=secret;"},
            f"{OF_TOKENS}.sasl.jaas.config is for {PLAIN_MODULE}; OAUTHBEARER needs {MODULE}",
        ),
    ],
)
def test_a_broker_without_a_token_is_refused_in_a_sentence(changes: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        login_at_brokers(member(**BY_TOKEN, **changes))
    assert sentence in str(refused.value)
    assert "secret;" not in str(refused.value)


def test_the_secret_of_a_broker_is_in_no_text() -> None:
    given = config(
        **BY_TOKEN,
        sasl_oauthbearer_token_endpoint_url="https://there/token",
        sasl_oauthbearer_client_credentials_client_id="broker",
        sasl_oauthbearer_client_credentials_client_secret="the-secret",
    )
    assert "the-secret" not in repr(given)
