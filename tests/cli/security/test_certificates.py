"""`moldau certificates make`."""

import stat
from pathlib import Path

import pytest

from moldau.transport.key_stores import Store, identify, trust
from moldau.transport.tls import server_context
from tests.cli.conftest import Moldau


def test_a_folder_gets_an_authority_and_the_files_of_each_host_and_user(offline: Moldau, tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    done = offline("certificates", "make", str(folder), "--host", "localhost,me", "--user", "alice", "--json")
    names = ["alice.p12", "alice.pem", "ca.key", "ca.p12", "ca.pem", "localhost.p12", "localhost.pem", "password"]
    assert sorted(path.name for path in folder.iterdir()) == names
    open_ones = {"ca.pem", "ca.p12"}
    assert {path.name for path in folder.iterdir() if stat.S_IMODE(path.stat().st_mode) != 0o600} == open_ones
    assert [one["name"] for one in done.json["certificates"]] == ["localhost", "alice"]
    assert done.json["authority"]["pem"] == str(folder / "ca.pem")
    context = server_context(("TLS",), (), "ssl")
    for one in done.json["certificates"]:
        password = Path(done.json["password_file"]).read_text()
        identify(context, Store(one["pem"], None, None, "ssl.keystore"))
        identify(context, Store(one["pkcs12"], None, password, "ssl.keystore"))
    trust(context, Store(done.json["authority"]["pkcs12"], None, None, "ssl.truststore"))


def test_a_second_call_keeps_the_authority_and_renews_what_it_names(offline: Moldau, tmp_path: Path) -> None:
    assert "localhost.pem" in offline("certificates", "make", str(tmp_path)).out
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    offline("certificates", "make", str(tmp_path), "--host", "localhost", "--user", "bob")
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    changed = {name for name, data in after.items() if before.get(name) != data}
    assert changed == {"localhost.pem", "localhost.p12", "bob.pem", "bob.p12"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--host", "../up"], "'../up' cannot be the name of a host or user here"),
        (["--host", ","], "'' cannot be the name"),
        (["--user", "ca"], "'ca' cannot be the name"),
        (["--user", "a", "--host", "a"], "a host or user is named twice"),
        (["--user", "x" * 65], "cannot be the name"),
        (["--host", "a,-b"], "'-b' cannot be the name"),
    ],
)
def test_a_name_that_is_none_is_refused(offline: Moldau, tmp_path: Path, given: list[str], sentence: str) -> None:
    done = offline("certificates", "make", str(tmp_path), *given)
    assert (done.code, list(tmp_path.iterdir())) == (1, [])
    assert sentence in done.err


def test_a_folder_with_other_files_of_these_names_is_left_alone(offline: Moldau, tmp_path: Path) -> None:
    for name in ("ca.key", "ca.pem"):
        (tmp_path / name).write_text("mine")
    done = offline("certificates", "make", str(tmp_path))
    assert done.code == 1
    assert "are not an authority that this command made" in done.err
    assert (tmp_path / "ca.key").read_text() == "mine"
