"""Who may ask what: names and passwords, rights on subjects, and what lists and ids show of others' subjects."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ConfigError
from moldau.registry.access_rules import AccessRules, hashed
from tests.registry.asking import Answer, LocalRegistry, body_of

SALT = b"0123456789abcdef"
ANN, BOB = (hashed(f"{name}-secret".encode(), SALT, 10).text() for name in ("ann", "bob"))
USERS = f"""
user.ann={ANN}
user.bob={BOB}
user.root={ANN}
rights.ann=write:orders-*, read:shared
rights.bob=read:*
rights.root=admin:*
"""


def guarded(folder: Path) -> LocalRegistry:
    """With the users, and three subjects that `root` has registered."""
    file = folder / "users.properties"
    file.write_text(USERS)
    made = LocalRegistry(users=file)
    for subject, schema in (("orders-value", '"int"'), ("shared", '"long"'), ("payments", '"string"')):
        assert by(made, "root", "POST", f"/subjects/{subject}/versions", body_of(schema), "ann-secret").status == 200
    return made


@pytest.fixture
def registry(tmp_path: Path) -> LocalRegistry:
    return guarded(tmp_path)


def by(
    registry: LocalRegistry, user: str, method: str, path: str, body: Any = None, password: str | None = None
) -> Answer:
    given = f"{user}:{password or f'{user}-secret'}".encode()
    return registry.ask(method, path, body, Authorization=f"Basic {base64.b64encode(given).decode()}")


@pytest.mark.parametrize(
    "header",
    ["", "Basic", "Basic x", "Bearer abc", "Basic " + base64.b64encode(b"ann").decode(),
     "Basic " + base64.b64encode(b"ann:wrong").decode(), "Basic " + base64.b64encode(b"nobody:ann-secret").decode(),
     "Basic " + base64.b64encode(b"bob:ann-secret").decode(), "Basic " + base64.b64encode(b"\xff:x").decode()],
)  # fmt: skip
def test_nobody_gets_in_without_the_password(registry: LocalRegistry, header: str) -> None:
    for method, path in (("GET", "/subjects"), ("GET", "/schemas/types"), ("DELETE", "/subjects/orders-value")):
        answer = registry.ask(method, path, Authorization=header)
        assert answer.status == 401 and answer.tree["error_code"] == 40101


@pytest.mark.parametrize(
    ("user", "method", "path", "status"),
    [
        ("ann", "GET", "/subjects/orders-value/versions/1", 200), ("ann", "GET", "/subjects/shared/versions", 200),
        ("ann", "GET", "/subjects/payments/versions", 403), ("ann", "POST", "/subjects/orders-key/versions", 200),
        ("ann", "POST", "/subjects/shared/versions", 403), ("ann", "POST", "/subjects/shared", 404),
        ("ann", "POST", "/subjects/payments", 403), ("ann", "DELETE", "/subjects/shared", 403),
        ("ann", "DELETE", "/subjects/orders-value", 200), ("ann", "DELETE", "/subjects/payments/versions/1", 403),
        ("ann", "PUT", "/config/orders-value", 200), ("ann", "PUT", "/config/payments", 403),
        ("ann", "PUT", "/config", 403), ("ann", "PUT", "/mode", 403), ("ann", "DELETE", "/config", 403),
        ("ann", "GET", "/config", 200), ("ann", "GET", "/config/payments", 403), ("ann", "GET", "/mode/payments", 403),
        ("ann", "POST", "/compatibility/subjects/payments/versions", 403), ("ann", "GET", "/contexts", 200),
        ("ann", "POST", "/compatibility/subjects/shared/versions/latest", 200), ("ann", "GET", "/schemas/ids/1", 200),
        ("ann", "GET", "/schemas/ids/3", 403), ("ann", "GET", "/schemas/ids/3/schema", 403),
        ("ann", "GET", "/schemas/ids/3/versions", 403), ("ann", "GET", "/schemas/ids/99", 404),
        ("ann", "GET", f"/schemas/ids/{'9' * 5_000}", 404),
        ("ann", "GET", "/subjects/:.:payments/versions", 403), ("ann", "GET", "/subjects/:.x:orders-a/versions", 403),
        ("bob", "GET", "/subjects/payments/versions", 200), ("bob", "POST", "/subjects/payments/versions", 403),
        ("bob", "PUT", "/config/payments", 403), ("bob", "DELETE", "/mode/payments", 403),
    ],
)  # fmt: skip
def test_each_right(registry: LocalRegistry, user: str, method: str, path: str, status: int) -> None:
    body = {"compatibility": "NONE"} if "/config" in path else {"mode": "READONLY"} if "/mode" in path else None
    body = body_of('"boolean"') if method == "POST" else body
    answer = by(registry, user, method, path, body)
    assert answer.status == status, answer
    if status == 403:
        assert answer.tree["error_code"] == 40301 and user in answer.tree["message"]


def test_lists_show_only_what_may_be_read(registry: LocalRegistry) -> None:
    assert by(registry, "ann", "GET", "/subjects").tree == ["orders-value", "shared"]
    by(registry, "root", "POST", "/subjects/payments/versions", {"schema": '"long"'}, "ann-secret")
    by(registry, "root", "PUT", "/config/payments", {"compatibility": "NONE"}, "ann-secret")
    by(registry, "root", "POST", "/subjects/payments/versions", {"schema": '"long"'}, "ann-secret")
    assert by(registry, "ann", "GET", "/schemas/ids/2/subjects").tree == ["shared"]
    assert by(registry, "ann", "GET", "/schemas/ids/2/versions").tree == [{"subject": "shared", "version": 1}]
    assert by(registry, "bob", "GET", "/schemas/ids/2/subjects").tree == ["payments", "shared"]
    assert {one["subject"] for one in by(registry, "ann", "GET", "/schemas").tree} == {"orders-value", "shared"}


def test_a_page_of_a_list_is_full_of_what_may_be_read(registry: LocalRegistry) -> None:
    """`payments` lies between the two, and counts nowhere."""
    assert by(registry, "ann", "GET", "/subjects?offset=1&limit=1").tree == ["shared"]
    assert [one["subject"] for one in by(registry, "ann", "GET", "/schemas?offset=1&limit=1").tree] == ["shared"]
    assert by(registry, "bob", "GET", "/subjects?offset=1&limit=1").tree == ["payments"]


def test_a_reader_registers_what_is_there_already(registry: LocalRegistry) -> None:
    before = len(registry.topic.records)
    for user, subject, schema in (("ann", "shared", '"long"'), ("bob", "payments", '{"type": "string"}')):
        answer = by(registry, user, "POST", f"/subjects/{subject}/versions", body_of(schema))
        assert answer.status == 200 and set(answer.tree) == {"id"}, answer
    assert by(registry, "ann", "POST", "/subjects/shared/versions", body_of("{")).tree["error_code"] == 42201
    for fields in ({"id": 9}, {"version": 1}):
        assert by(registry, "ann", "POST", "/subjects/shared/versions", body_of('"long"', **fields)).status == 403
    by(registry, "root", "DELETE", "/subjects/shared", password="ann-secret")
    assert by(registry, "ann", "POST", "/subjects/shared/versions", body_of('"long"')).status == 403
    assert len(registry.topic.records) == before + 1, "only the deletion was written"


def test_a_reference_does_not_show_what_may_not_be_read(registry: LocalRegistry) -> None:
    refers = [{"name": "x", "subject": "payments", "version": 1}]
    for path in ("/subjects/orders-a/versions", "/subjects/orders-a", "/compatibility/subjects/orders-a/versions"):
        assert by(registry, "ann", "POST", path, body_of('"int"', references=refers)).status == 403


def test_a_right_password_is_hashed_once(registry: LocalRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    assert by(registry, "ann", "GET", "/subjects").status == 200
    monkeypatch.setattr("moldau.registry.access_rules._scrypt", lambda *_: b"")
    assert by(registry, "ann", "GET", "/subjects").status == 200
    assert by(registry, "ann", "GET", "/subjects", password="other").status == 401


@pytest.mark.parametrize(
    "wrong",
    ["", "user.ann=secret", f"user.a:b={ANN}", f"name={ANN}", "user.ann=scrypt:40:8:1:" + ANN.split(":", 4)[4],
     f"user.ann={ANN}\nrights.bob=read:*", f"user.ann={ANN}\nrights.ann=all:*", f"user.ann={ANN}\nrights.ann=read"],
)  # fmt: skip
def test_a_wrong_file_is_refused_and_shows_no_hash(wrong: str) -> None:
    properties = dict(line.split("=", 1) for line in wrong.splitlines())
    with pytest.raises(ConfigError) as refused:
        AccessRules(properties)
    assert not re.search(r"[A-Za-z0-9+/]{30}", str(refused.value))


def test_a_hash_shows_itself_nowhere() -> None:
    made = hashed(b"secret", SALT)
    assert repr(made) == "PasswordHash(...)" and made.matches(b"secret") and not made.matches(b"Secret")
