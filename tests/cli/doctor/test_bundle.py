"""A bundle for a bug report has what helps, and none of the secrets that were put everywhere."""

import base64
import json
import tarfile
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from moldau.cli.doctor.redacting import HIDDEN, Redactor, is_secret
from moldau.testing import Broker
from tests.cli.conftest import Moldau

SECRETS = [f"hunter{number}-Geh3im" for number in range(20)]
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="{}";'


def read(bundle: Path) -> dict[str, str]:
    with tarfile.open(bundle) as tar:
        return {one.name: tar.extractfile(one).read().decode() for one in tar.getmembers()}  # type: ignore[union-attr]


def test_secrets_are_put_everywhere_and_none_is_in_the_bundle(
    offline: Moldau, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = iter(SECRETS)
    secret_file, jaas_file = tmp_path / "cluster-secret", tmp_path / "jaas.conf"
    secret_file.write_text(next(some) + "\n")
    jaas_file.write_text(f'Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required\n'
                         f' username="kafka"\n password="{next(some)}";\n}};\n')  # fmt: skip
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={jaas_file}")
    monkeypatch.setenv("MOLDAU_PASSWORD", next(some))
    (tmp_path / "client.properties").write_text(f"security.protocol=PLAINTEXT\nsasl.password={next(some)}\n")
    lines = {
        "listeners": "PLAINTEXT://localhost:9092",
        "log.dirs": str(tmp_path / "data"),
        "ssl.keystore.password": next(some),
        "ssl.key.password": next(some),
        "ssl.keystore.key": PEM.replace("\n", "\\n"),
        "ssl.truststore.password": next(some),
        "zookeeper.ssl.keystore.password": next(some),
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": JAAS.format(next(some)),
        "cluster.secret.file": str(secret_file),
        "delegation.token.secret.key": next(some),
        "my.company.api-key": next(some),
        "metrics.url": f"https://user:{next(some)}@metrics.example/",
    }
    config = tmp_path / "server.properties"
    config.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    in_config = [secret for secret in SECRETS if secret in config.read_text()]
    log = tmp_path / "broker.log"
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl"
    encoded = [base64.b64encode(one.encode()).decode() for one in in_config]
    log.write_text("\n".join([
        "INFO moldau.server: listening", *(f"WARNING the login with {one} failed" for one in in_config), *encoded,
        PEM, f"Authorization: Bearer {token}", f'{{"password": "{next(some)}"}}', f"sasl.password={next(some)}",
        f"GET https://admin:{next(some)}@host/", secret_file.read_text(), jaas_file.read_text(),
    ]))  # fmt: skip
    bundle = tmp_path / "report.tar.gz"
    with Broker() as broker:
        ran = offline(
            "doctor", "-b", broker.address, "--config", str(config), "--log", str(log), "--bundle", str(bundle),
            "--command-config", str(tmp_path / "client.properties"),
        )  # fmt: skip
    assert f"wrote {bundle}" in ran.err
    files = read(bundle)
    assert sorted(files) == [
        f"moldau-doctor/{name}"
        for name in ("README.txt", "doctor.json", "logs/broker.log", "settings.properties", "versions.json")
    ]
    whole = "\n".join(files.values()) + ran.out
    for leak in [*SECRETS, *encoded, token, "MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC"]:
        assert leak not in whole, leak
    assert "INFO moldau.server: listening" in files["moldau-doctor/logs/broker.log"]
    shown = files["moldau-doctor/settings.properties"]
    assert f"ssl.keystore.password={HIDDEN}" in shown and f"log.dirs={tmp_path}/data" in shown
    facts = json.loads(files["moldau-doctor/doctor.json"])["facts"]
    assert facts["cluster"]["status"]["topics"] >= 0 and facts["disks"]
    assert json.loads(files["moldau-doctor/versions.json"])["moldau"].startswith("moldau ")
    assert bundle.stat().st_mode & 0o777 == 0o600
    again = offline("doctor", "--config", str(config), "--bundle", str(bundle))
    assert again.error == f"{bundle} exists already: give --bundle another name"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.x.sasl.jaas.config", True),
        ("some.unknown.token", True),
        ("ssl.keystore.location", False),
        ("delegation.token.max.lifetime.ms", False),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("zookeeper.connect", False),
        ("cluster.secret.file", False),
    ],
)
def test_settings_that_are_secrets(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_a_text_keeps_what_is_no_secret() -> None:
    redactor = Redactor(["abc"])  # too short to be looked for
    text = "the topic abc-0 of tokens was created by user alice: https://host/path, eyJ, password was wrong"
    assert redactor.text(text) == text
    redactor.learn("pass word\nsecond line")
    assert redactor.data({"a": ["x pass word y", 3, None], "second line": 1}) == {
        "a": [f"x {HIDDEN} y", 3, None],
        HIDDEN: 1,
    }


def test_a_secret_is_hidden_in_every_form() -> None:
    redactor, secret = Redactor(), 'pass"word/1 =x'
    redactor.learn_settings({"sasl.jaas.config": JAAS.format("in-the-jaas"), "x.url": "http://user:in-the-url@host/"})
    assert redactor.text("in-the-jaas, in-the-url") == f"{HIDDEN}, {HIDDEN}"
    redactor.learn(secret)
    raw = secret.encode()
    forms = [secret, secret.replace('"', '\\"'), quote(secret, safe=""), quote_plus(secret), raw.hex()]
    forms += [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("=")]
    assert [redactor.text(f"<{form}>") for form in forms] == [f"<{HIDDEN}>"] * len(forms)
