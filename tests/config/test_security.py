"""The settings of single listeners, `listener.name.<listener>.<name>`."""

import pytest

from moldau.config import broker_config
from moldau.config.security import of_single_listeners
from moldau.errors import ConfigError

TWO = {
    "listeners": "IN.SIDE://:1,OUT://:2,CONTROLLER://:3",
    "listener.security.protocol.map": "IN.SIDE:PLAINTEXT,OUT:SSL",
    "inter.broker.listener.name": "IN.SIDE",
    "ssl.client.auth": "requested",
    "ssl.keystore.password": "hunter2",
}


def test_a_listener_has_the_common_settings_except_its_own() -> None:
    own = {"listener.name.out.ssl.client.auth": "required", "listener.name.in.side.ssl.keystore.password": "hunter3"}
    config, warnings = broker_config(TWO | own)
    out, inside = config.of_listener("OUT"), config.of_listener("IN.SIDE")
    assert (out.ssl_client_auth, out.ssl_keystore_password) == ("required", "hunter2")
    assert (inside.ssl_client_auth, inside.ssl_keystore_password) == ("requested", "hunter3")
    assert config.of_listener("ANOTHER") is config
    assert "hunter" not in repr(config)
    assert warnings == ["listeners of Kafka's controllers are not opened: CONTROLLER"]


def test_settings_of_single_listeners_are_described_by_their_whole_names() -> None:
    own = {
        "listener.name.out.max.connections": "7",
        "listener.name.out.ssl.keystore.location": "f",
        "listener.name.out.plain.sasl.jaas.config": "x",
    }
    found = {setting.name: (setting.text(value), setting.read_only, setting.sensitive)
             for setting, value in of_single_listeners(broker_config(TWO | own)[0].own_settings)}  # fmt: skip
    assert {name: value for name, (value, _, _) in found.items()} == own
    assert [name for name, (_, fixed, _) in found.items() if not fixed] == [*own][:2]
    assert [name for name, (_, _, secret) in found.items() if secret] == ["listener.name.out.plain.sasl.jaas.config"]


def test_one_mechanism_of_a_listener_has_tokens_of_its_own() -> None:
    """Kafka's own documents write them so."""
    of_it = "listener.name.out.oauthbearer.sasl.oauthbearer"
    own = {
        f"{of_it}.jwks.endpoint.url": "https://out/keys",
        f"{of_it}.expected.audience": "a,b",
        f"{of_it}.client.credentials.client.secret": "hunter4",
    }
    common = {"sasl.oauthbearer.jwks.endpoint.url": "https://all/keys", "sasl.oauthbearer.expected.issuer": "us"}
    config, warnings = broker_config(TWO | common | own)
    out = config.of_mechanism("OUT", "OAUTHBEARER")
    assert out.sasl_oauthbearer_jwks_endpoint_url == "https://out/keys"
    assert out.sasl_oauthbearer_expected_audience == ("a", "b") and out.sasl_oauthbearer_expected_issuer == "us"
    assert config.of_listener("OUT").sasl_oauthbearer_jwks_endpoint_url == "https://all/keys"
    assert len(warnings) == 1 and "hunter" not in repr(config)
    secrets = [one.name for one, _ in of_single_listeners(config.own_settings) if one.sensitive]
    assert secrets == [f"{of_it}.client.credentials.client.secret"]


def test_what_has_no_effect_is_said() -> None:
    names = (
        "listener.name.controller.ssl.client.auth",
        "listener.name.out.ssl.provider",
    )
    warnings = broker_config(TWO | dict.fromkeys(names, "x"))[1]
    assert warnings[0] == f"these Kafka settings have no effect here: {', '.join(names)}"


def test_kafkas_own_builder_of_principals_is_what_this_broker_does() -> None:
    builder = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
    assert "principal.builder.class" in broker_config({"principal.builder.class": builder})[1][0]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("listener.name.OUT.ssl.client.auth", r"that listeners does not name; .* \(listener.name.in.side, listener"),
        ("listener.name.outside.ssl.client.auth", "is for a listener that listeners does not name"),
        ("listener.name.out.ssl.client.aut", "unknown setting 'ssl.client.aut' of the listener OUT; did you mean ssl"),
        ("listener.name.out.ssl.client.auth", "ssl.client.auth must be one of none, requested, required"),
        ("ssl.anything", "unknown setting 'ssl.anything'"),
        ("principal.builder.class", "names principals; remove principal.builder.class, and set ssl.principal.mapping"),
        ("ssl.engine.factory.class", "cannot load a class that makes TLS engines; remove ssl.engine.factory.class"),
    ],
)
def test_a_misspelt_protection_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        broker_config(TWO | {name: "x"})
