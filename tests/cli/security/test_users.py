"""`moldau server format --add-scram` and `moldau users`: users before the first start, and while the broker runs."""

from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.cli.server.formatting import wanted
from moldau.errors import ConfigError
from moldau.transport.sasl.exchange import to_base64
from moldau.transport.sasl.scram import credential, salted_password
from tests.cli.conftest import Moldau

SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
}
ADMIN = "SCRAM-SHA-256=[name=admin,password=admin-secret]"


def login(folder: Path, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> str:
    """The file of a client that logs in."""
    path = folder / f"{user}-{mechanism}.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} required username="{user}" password="{password}";\n'
    )
    return str(path)


def test_users_of_the_first_start_add_list_and_remove_others(offline: Moldau, tmp_path: Path) -> None:
    broker = Broker(tmp_path, SETTINGS)
    settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    done = offline("server", "format", "--data-dir", str(broker.data), *settings, "--add-scram", ADMIN)
    assert (done.code, done.lines) == (0, [f"formatted {broker.data} with the users admin"])
    broker.start()
    try:
        asked = ("-b", broker.address, "--command-config")
        admin = (*asked, login(tmp_path, "admin", "admin-secret"))
        secret = tmp_path / "secret"
        secret.write_text("alice-secret\n")
        added = offline("users", "add", "alice", "--password-file", str(secret), *admin)
        assert added.lines == ["alice logs in by SCRAM-SHA-256 and SCRAM-SHA-512"]
        assert offline("topics", "list", *asked, login(tmp_path, "alice", "alice-secret", "SCRAM-SHA-512")).code == 0
        bob = ("users", "add", "bob", *admin)
        assert offline(*bob, "--password-file", "-", stdin=b"\n").error == "the password from - is empty"
        assert "no terminal" in offline(*bob).error
        assert "cannot read a password" in offline(*bob, "--password-file", "/nowhere").error
        wrong = offline(*bob, "--mechanism", "PLAIN", "--password-file", "-", stdin=b"secret\n")
        assert wrong.error == "--mechanism is one of SCRAM-SHA-256, SCRAM-SHA-512, not 'PLAIN'"
        listed = offline("users", "list", "--json", *admin).json
        assert [(one["user"], one["mechanism"], one["iterations"]) for one in listed] == [
            ("admin", "SCRAM-SHA-256", 8192),
            ("alice", "SCRAM-SHA-256", 8192),
            ("alice", "SCRAM-SHA-512", 8192),
        ]
        removed = offline("users", "remove", "alice", "--mechanism", "SCRAM-SHA-512", *admin)
        assert removed.lines == ["alice no longer logs in by SCRAM-SHA-512"]
        assert offline("users", "remove", "alice", *admin).lines == ["alice is removed"]
        assert offline("users", "remove", "alice", *admin).code == 1
        carol = ("carol", "--mechanism", "SCRAM-SHA-512", "--json", *admin)
        [added] = offline("users", "add", *carol, "--password-file", str(secret)).json
        assert added == {"user": "carol", "mechanism": "SCRAM-SHA-512", "iterations": 8192}
        assert offline("users", "remove", *carol).json == [{"user": "carol", "mechanism": "SCRAM-SHA-512"}]
        assert "USER" in offline("users", "list", *admin).lines[0]
        refused = offline("topics", "list", *asked, login(tmp_path, "alice", "alice-secret"))
        assert refused.code == 1 and "alice-secret" not in refused.error
    finally:
        broker.stop()


def test_a_token_is_made_used_renewed_listed_and_ended(offline: Moldau, tmp_path: Path) -> None:
    settings = {**SETTINGS, "delegation.token.secret.key": "the key of the cluster"}
    broker = Broker(tmp_path, settings)
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    offline("server", "format", "--data-dir", str(broker.data), *given, "--add-scram", ADMIN)
    broker.start()
    try:
        asked = ("-b", broker.address, "--command-config")
        admin = (*asked, login(tmp_path, "admin", "admin-secret"))
        (token,) = offline("tokens", "create", "--renewer", "bob", "--json", *admin).json
        assert (token["owner"], token["requester"], token["renewers"]) == ("admin", "admin", ["bob"])
        by_token = Path(login(tmp_path, token["token_id"], token["hmac"]))
        by_token.write_text(by_token.read_text().replace(" required ", ' required tokenauth="true" '))
        assert offline("topics", "list", *asked, str(by_token)).code == 0
        secret = tmp_path / "hmac"
        secret.write_text(token["hmac"])
        assert "expires at" in offline("tokens", "renew", f"@{secret}", "--period", "60000", *admin).out
        assert [one["token_id"] for one in offline("tokens", "list", "--json", *admin).json] == [token["token_id"]]
        assert token["hmac"] not in offline("tokens", "list", "--owner", "admin", *admin).out
        for change in ("renew", "expire"):
            assert list(offline("tokens", change, token["hmac"], "--period", "9000", "--json", *admin).json) == [
                "expires"
            ]
        assert "expires at" in offline("tokens", "expire", token["hmac"], "--period", "5000", *admin).out
        assert offline("tokens", "expire", token["hmac"], *admin).lines == ["ended"]
        assert offline("tokens", "expire", token["hmac"], *admin).code == 1
        assert offline("topics", "list", *asked, str(by_token)).code == 1
        assert "is not the secret of a token" in offline("tokens", "renew", "?", *admin).error
    finally:
        broker.stop()
    assert token["hmac"] not in broker.log()


def test_a_credential_is_asked_for_as_with_kafka_s_tool(tmp_path: Path) -> None:
    salt, salted = b"salt", salted_password("SCRAM-SHA-512", "a,b=c", b"salt", 5000)
    expected = credential("SCRAM-SHA-512", salt, 5000, salted)
    by_password = f"SCRAM-SHA-512=[name=alice,iterations=5000,salt={to_base64(salt)},password=a,b=c]"
    by_keys = f"SCRAM-SHA-512=[name=alice,iterations=5000,salt={to_base64(salt)},saltedpassword={to_base64(salted)}]"
    (tmp_path / "secret").write_text("a,b=c\n")
    by_file = by_password.replace("password=a,b=c", f"passwordfile={tmp_path / 'secret'}")
    quoted = by_password.replace("=alice", '="alice"').replace("=a,b=c", '="a,b=c"').replace("=5000", '="5000"')
    for text in (by_password, by_keys, by_file, quoted):
        assert wanted(text) == ("alice", "SCRAM-SHA-512", expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PLAIN=[name=a,password=secret]",
        "SCRAM-SHA-256=name=a,password=secret",
        "SCRAM-SHA-256=[password=secret]",
        "SCRAM-SHA-256=[name=a,password=]",
        "SCRAM-SHA-256=[name=a,name=b,password=secret]",
        "SCRAM-SHA-256=[name=a,password=secret,iterations=5]",
        "SCRAM-SHA-256=[name=a,password=secret,salt=?]",
        "SCRAM-SHA-256=[name=a,saltedpassword=c2VjcmV0]",
        "SCRAM-SHA-256=[secret]",
    ],
)
def test_what_is_no_credential_is_refused_without_a_password_in_the_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="--add-scram") as refused:
        wanted(text)
    assert "secret" not in str(refused.value).replace("saltedpassword", "").replace("admin-secret", "")
