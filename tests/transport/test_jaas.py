"""The user in a JAAS file."""

from pathlib import Path

import pytest

from moldau.errors import ConfigError
from moldau.transport.jaas import Login, LoginModule, login_of, module_of

DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
FILE = f"""
// for Kafka's own clients
KafkaServer {{
    org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin" password="admin" user_admin="admin";
    another.Module optional debug=true;
}};
/* for
   ZooKeeper */
Client {{
    {DIGEST} required
    username="kafka"   // "quoted"
    password="a;b {{\\"c\\"}} // =";
}};
"""


def written(folder: Path, text: str) -> str:
    path = folder / "jaas.conf"
    path.write_text(text)
    return str(path)


def test_the_user_is_that_of_the_section(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    assert login_of(path, "Client") == Login("kafka", 'a;b {"c"} // =')
    assert login_of(path, "Other") is None
    with pytest.raises(ConfigError, match=r"the section KafkaServer of .* is for org\.apache\.kafka"):
        login_of(path, "KafkaServer")


def test_a_login_does_not_print_its_password() -> None:
    assert "secret" not in repr(Login("kafka", "secret"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Client", "is not a JAAS file: a section is NAME"),
        (f'Client {{ {DIGEST} required username="a', "is not a JAAS file: a quote in it does not end"),
        ("{ }", "is not a JAAS file: a section is NAME"),
        (f"Client {{ {DIGEST} required username", "username has no value in the section Client"),
        (f'Client {{ {DIGEST} required ="x"; }};', "= has no value in the section Client"),
        (f'Client {{ {DIGEST} required username="a"', "the section Client does not end with };"),
        ("Client { };", "the section Client does not end with };"),
        ("Client { m required; } Other", "the section Client does not end with };"),
        (f'Client {{ {DIGEST} required username="a"; }};', "needs username and password"),
        (
            "Client { com.sun.security.auth.module.Krb5LoginModule required; };",
            "is for com.sun.security.auth.module.Krb5",
        ),
    ],
)
def test_what_is_no_jaas_file_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        login_of(written(tmp_path, text), "Client")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the JAAS file .*: No such file"):
        login_of(str(tmp_path / "absent"), "Client")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read the JAAS file"):
        login_of(str(tmp_path / "bytes"), "Client")


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("'alice'", "alice"),
        ("alice", "alice"),
        ("'say \"hi\"; // no comment'", 'say "hi"; // no comment'),
        ('"it\'s"', "it's"),
        (r'"tab\tline\nquote\"back\\"', 'tab\tline\nquote"back\\'),
        (r"'it\'s \101\7'", "it's A\a"),
        ('""', ""),
    ],
)
def test_values_are_quoted_and_escaped_as_java_reads_them(value: str, read: str) -> None:
    module = module_of(f"a.b.ScramLoginModule  Required /* who */ username={value}\n password = 'p' ;", "setting")
    assert module == LoginModule("a.b.ScramLoginModule", {"username": read, "password": "p"})


@pytest.mark.parametrize(
    "text", ["a required b='s3cr;", "a required b='s3cr\";", "a required 's3cr';", "a required b='s3cr' d"]
)
def test_what_is_no_login_module_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ConfigError, match="setting must be one login module") as refused:
        module_of(f"a required {text}", "setting")
    assert "s3cr" not in str(refused.value)
