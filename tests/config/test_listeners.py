"""Which listeners a broker opens and advertises, and which settings of listeners are refused."""

import pytest

from moldau.config import ClientListener, Listener, broker_config
from moldau.config.listeners import bound_host, unauthenticated
from moldau.errors import ConfigError

TWO = {
    "listeners": "INSIDE://10.0.0.1:9092,OUTSIDE://:9093",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT, outside:plaintext",
    "inter.broker.listener.name": "INSIDE",
}
BOTH = "PLAINTEXT:PLAINTEXT,MINE:PLAINTEXT,SSL:PLAINTEXT"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("PLAINTEXT://[::1]:0", "::1", 0), ("plaintext://localhost:1", "localhost", 1), ("PLAINTEXT://:9092", "", 9092)],
)
def test_a_listener_is_a_name_a_host_and_a_port(text: str, host: str, port: int) -> None:
    advertised = Listener("PLAINTEXT", host, port)
    opened = ClientListener("PLAINTEXT", "PLAINTEXT", host, port, advertised)
    assert broker_config({"listeners": text})[0].client_listeners == (opened,)


def test_every_listener_is_opened_and_advertises_itself_unless_it_has_another_address() -> None:
    inside, outside = Listener("INSIDE", "10.0.0.1", 9092), Listener("OUTSIDE", "", 9093)
    config, warnings = broker_config(TWO)
    assert config.client_listeners == (
        ClientListener("INSIDE", "PLAINTEXT", "10.0.0.1", 9092, inside),
        ClientListener("OUTSIDE", "PLAINTEXT", "", 9093, outside),
    )
    assert warnings == []
    advertised = "outside://example.org:443,INSIDE://10.0.0.1:9092"
    config, _ = broker_config({**TWO, "advertised.listeners": advertised})
    assert [one.advertised for one in config.client_listeners] == [inside, Listener("OUTSIDE", "example.org", 443)]


def test_a_listener_may_be_left_out_of_the_advertised_ones() -> None:
    config, _ = broker_config({**TWO, "advertised.listeners": "INSIDE://inside:9092"})
    assert [one.advertised for one in config.client_listeners] == [Listener("INSIDE", "inside", 9092), None]


@pytest.mark.parametrize("names", [None, "CONTROLLER", "quorum,controller"])
def test_listeners_of_controllers_are_not_opened_which_is_said_once(names: str | None) -> None:
    properties = {
        "listeners": "CONTROLLER://:9093,PLAINTEXT://:9092",
        "advertised.listeners": "CONTROLLER://0.0.0.0:9093,PLAINTEXT://here:9092",
        **({} if names is None else {"controller.listener.names": names}),
    }
    config, warnings = broker_config(properties)
    assert [one.name for one in config.client_listeners] == ["PLAINTEXT"]
    assert warnings == ["listeners of Kafka's controllers are not opened: CONTROLLER"]


def test_a_listener_called_controller_is_opened_if_the_controllers_have_another() -> None:
    properties = {
        "listeners": "CONTROLLER://:9092,QUORUM://:9093",
        "controller.listener.names": "QUORUM",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,QUORUM:SSL",
        "inter.broker.listener.name": "CONTROLLER",
    }
    assert [one.name for one in broker_config(properties)[0].client_listeners] == ["CONTROLLER"]


@pytest.mark.parametrize(
    "listeners",
    [
        "INSIDE://127.0.0.1:9092,OUTSIDE://[::1]:9092",
        "INSIDE://0.0.0.0:9092,OUTSIDE://[::]:9092",
        "INSIDE://:0,OUTSIDE://:0",
    ],
)
def test_ipv4_and_ipv6_may_share_a_port_and_port_0_is_another_one_each_time(listeners: str) -> None:
    assert len(broker_config({**TWO, "listeners": listeners})[0].client_listeners) == 2


@pytest.mark.parametrize(
    "listeners",
    [
        "INSIDE://:9092,OUTSIDE://:9092",
        "INSIDE://a:9092,OUTSIDE://b:9092",
        "INSIDE://127.0.0.1:9092,OUTSIDE://127.0.0.2:9092",
        "INSIDE://[::1]:9092,OUTSIDE://localhost:9092",
        "INSIDE://[::1]:9092,OUTSIDE://127.0.0.1:9092,PLAINTEXT://:9092",
    ],
)
def test_any_other_port_that_is_given_twice_is_refused(listeners: str) -> None:
    protocols = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    with pytest.raises(ConfigError, match=r"^listeners gives port 9092 to INSIDE and OUTSIDE"):
        broker_config({**TWO, "listeners": listeners, "listener.security.protocol.map": protocols})


def test_advertised_addresses_may_share_a_port() -> None:
    advertised = "INSIDE://proxy:443,OUTSIDE://proxy:443"
    assert len(broker_config({**TWO, "advertised.listeners": advertised})[0].client_listeners) == 2


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({}, "PLAINTEXT"),
        ({"security.inter.broker.protocol": "PLAINTEXT"}, "PLAINTEXT"),
        ({**TWO, "inter.broker.listener.name": " outside "}, "OUTSIDE"),
        ({"listeners": "PLAINTEXT://:1,MINE://:2", "listener.security.protocol.map": BOTH}, "PLAINTEXT"),
        (
            {"listeners": "SSL://:1", "listener.security.protocol.map": BOTH, "security.inter.broker.protocol": "SSL"},
            "SSL",
        ),
    ],
)
def test_other_brokers_connect_to_the_listener_of_that_name_or_of_that_protocols(
    properties: dict[str, str], name: str
) -> None:
    assert broker_config(properties)[0].inter_broker_listener == name


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"listeners": ""}, "has no listener for clients"),
        ({"listeners": "CONTROLLER://:9093"}, "has no listener for clients"),
        ({"listeners": "localhost:9092"}, "list of NAME://HOST:PORT, not 'localhost:9092'"),
        ({"listeners": "PLAINTEXT://h:99999"}, "listeners has the port 99999 in"),
        ({"listeners": "PLAINTEXT://h"}, "list of NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "list of NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://a:1,plaintext://b:2"}, "names the listener PLAINTEXT twice"),
        ({"listeners": "MINE://:9093"}, "has no protocol for the listener MINE"),
        ({"listener.security.protocol.map": ""}, "has no protocol for the listener PLAINTEXT"),
        ({"listener.security.protocol.map": "PLAINTEXT:NOTHING"}, "list of NAME:PROTOCOL, not 'PLAINTEXT:NOTHING'"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "clients can connect to, not 0.0.0.0"),
        ({"advertised.listeners": "PLAINTEXT://[::]:9092"}, "clients can connect to, not ::"),
        ({"advertised.listeners": "PLAINTEXT://a:1,PLAINTEXT://a:1"}, "advertised.listeners names the .* twice"),
        ({"advertised.listeners": "PLAINTEXT://a:1,SSL://a:2"}, "names SSL, which is not among listeners"),
        ({"inter.broker.listener.name": "OUTSIDE"}, r"is OUTSIDE, which is not among the advertised .*\(PLAINTEXT\)"),
        ({**TWO, "inter.broker.listener.name": "ELSEWHERE"}, r"advertised listeners \(INSIDE, OUTSIDE\)"),
        ({**TWO, "inter.broker.listener.name": ""}, "must be set, because no advertised listener is called PLAINTEXT"),
        ({**TWO, "advertised.listeners": "OUTSIDE://example.org:9093"}, "is INSIDE, which is not among the advertised"),
        ({**TWO, "security.inter.broker.protocol": "PLAINTEXT"}, "are both set: give only one"),
        (
            {"security.inter.broker.protocol": "SSL"},
            r"protocol is SSL, which is not among the advertised .*\(PLAINTEXT\)",
        ),
        ({"security.inter.broker.protocol": "NONE"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
    ],
)
def test_each_broken_rule_is_refused_in_one_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refused:
        broker_config(properties)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("listeners", "hosts"),
    [
        ("A://:1,B://[::]:2,C://localhost:3,D://[::1]:4", [None, None, "localhost", "::1"]),
        ("A://0.0.0.0:1,B://[::]:1", ["0.0.0.0", "::"]),
        ("A://0.0.0.0:0,B://[::]:0", ["0.0.0.0", None]),
    ],
)
def test_every_address_of_ipv6_is_every_interface_as_in_java(listeners: str, hosts: list[str | None]) -> None:
    names = [one[0] for one in listeners.split(",")]
    protocols = ",".join(f"{name}:PLAINTEXT" for name in names)
    more = {"listener.security.protocol.map": protocols, "inter.broker.listener.name": "A"}
    advertised = {"advertised.listeners": "A://here:1"} if "0.0.0.0" in listeners else {}
    found = broker_config({"listeners": listeners, **more, **advertised})[0].client_listeners
    assert [bound_host(one, found) for one in found] == hosts


@pytest.mark.parametrize(
    ("host", "protocol", "client_auth", "is_open"),
    [
        ("", "PLAINTEXT", "none", True),
        ("10.0.0.1", "PLAINTEXT", "none", True),
        ("0.0.0.0", "SSL", "requested", True),
        ("::", "SSL", "required", False),
        ("", "SASL_PLAINTEXT", "none", False),
        ("localhost", "PLAINTEXT", "none", False),
        ("127.0.0.1", "SSL", "none", False),
        ("::1", "PLAINTEXT", "none", False),
    ],
)
def test_a_listener_that_serves_anybody_over_a_network_is_named(
    host: str, protocol: str, client_auth: str, is_open: bool
) -> None:
    line = unauthenticated(ClientListener("OUTSIDE", protocol, host, 9092, None), client_auth)
    assert (line is not None) is is_open
    if line is not None:
        assert line.startswith(f"NO AUTHENTICATION on the listener OUTSIDE ({host or 'every interface'}:9092)")
