"""Values that a provider has: variables of the environment, settings of other files, files in a folder."""

from pathlib import Path

import pytest

from moldau.client.security.brokers import Brokers, settings_in
from moldau.config import broker_config
from moldau.config.providers import resolved
from moldau.errors import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider."
DECLARED = {
    "config.providers": "env, file,dir",
    "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
    "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
}


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "hunter2")
    (tmp_path / "secret.properties").write_text("the.key = hunter3\n")
    (tmp_path / "token").write_text("hunter4")


def test_values_come_from_where_they_are_kept(tmp_path: Path) -> None:
    given = {
        "a": "x${env:KEPT}y",
        "b": f"${{file:{tmp_path}/secret.properties:the.key}} and ${{env:KEPT}}",
        "c": f"${{dir:{tmp_path}:token}}",
        "d": "${other:KEPT} $1 ${name}",
    }
    assert resolved(DECLARED | given) == {
        "a": "xhunter2y",
        "b": "hunter3 and hunter2",
        "c": "hunter4",
        "d": "${other:KEPT} $1 ${name}",
    }
    assert resolved(given) is given, "nothing is looked up unless a provider is declared"


def test_a_broker_and_the_file_of_a_client_have_them(tmp_path: Path) -> None:
    config, warnings = broker_config({**DECLARED, "ssl.key.password": "${env:KEPT}", "broker.id": "3"})
    assert (config.ssl_key_password, warnings) == ("hunter2", []) and "hunter" not in repr(config)
    file = tmp_path / "client.properties"
    lines = {**DECLARED, "security.protocol": "SASL_SSL", "sasl.password": "${env:KEPT}"}
    file.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    read = settings_in(Brokers("a:1", {"client.id": "${env:KEPT}"}, str(file)))
    assert read == {"security.protocol": "SASL_SSL", "sasl.password": "hunter2", "client.id": "${env:KEPT}"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"a": "${env:ABSENT}"}, r"a has \$\{env:ABSENT\}, which the provider env does not have"),
        ({"a": "${env:path:KEPT}"}, r"a variable of env is \$\{env:NAME\}, without a path"),
        ({"a": "${file:KEPT}"}, r"a variable of file is \$\{file:PATH:KEY\}, with a path"),
        ({"a": "${file:/nowhere:k}"}, "cannot read /nowhere: No such file"),
        ({"a": "${file:FOLDER/secret.properties:k}"}, "which the provider file does not have"),
        ({"a": "${dir:FOLDER:absent}"}, "which the provider dir does not have"),
        ({"a": "${dir:FOLDER/sub:../token}"}, "which the provider dir does not have"),
        ({"a": "${dir:FOLDER:sub}"}, "cannot read .*sub: Is a directory"),
        ({"config.providers": "vault"}, "config.providers.vault.class must be one of Kafka's EnvVarConfigProvider, "),
        ({"config.providers.env.param.allowlist.pattern": "OTHER.*", "a": "${env:KEPT}"}, "env does not have"),
        ({"config.providers.env.param.allowlist.pattern": "(", "a": "${env:KEPT}"}, "pattern cannot be used"),
        ({"config.providers.env.param.allow": "x", "a": "${env:KEPT}"}, "param.allow is not known; allowlist.pattern"),
        (
            {"config.providers.dir.param.allowed.paths": "FOLDER/sub", "a": "${dir:FOLDER/sub/..:token}"},
            "is not below config.providers.dir.param.allowed.paths",
        ),
    ],
)
def test_what_cannot_be_found_is_refused_without_a_value(tmp_path: Path, given: dict[str, str], sentence: str) -> None:
    (tmp_path / "sub").mkdir()
    filled = {name: text.replace("FOLDER", str(tmp_path)) for name, text in given.items()}
    with pytest.raises(ConfigError, match=sentence) as refused:
        resolved(DECLARED | filled)
    assert "hunter" not in str(refused.value) and "\n" not in str(refused.value)


def test_allowed_paths_and_names_are_used(tmp_path: Path) -> None:
    only = {
        "config.providers.env.param.allowlist.pattern": "KE.T",
        "config.providers.file.param.allowed.paths": f"/nowhere,{tmp_path}",
    }
    given = {"a": "${env:KEPT}", "b": f"${{file:{tmp_path}/secret.properties:the.key}}"}
    assert resolved(DECLARED | only | given) == {"a": "hunter2", "b": "hunter3"}
