"""A registry without a broker or a socket: the records of each change are packed, read and applied at once."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from moldau.registry.api import RegistryApi
from moldau.registry.asgi import RegistryApp
from moldau.registry.authentication import RegistryGuard
from moldau.registry.decisions import Writes
from moldau.registry.http_messages import RestAnswer, RestRequest, answered
from moldau.registry.state import RegistryState
from moldau.registry.topic_records import packed_key, packed_value, read_key, read_value

Topic = list[tuple[bytes, bytes | None]]


class Answer(NamedTuple):
    status: int
    tree: Any
    media_type: str


class LocalTopic:
    """A topic in memory."""

    def __init__(self, state: RegistryState, records: Topic):
        self.records: Topic = []
        self._state = state
        for key, value in records:
            self.take_in(key, value)

    def take_in(self, packed: bytes, value: bytes | None) -> None:
        self.records.append((packed, value))
        key = read_key(packed)
        self._state.apply(key, read_value(key, value, 0), packed)

    async def change(self, decide: Callable[[], Writes], request: RestRequest) -> RestAnswer:
        writes = decide()
        for key, value in writes.records:
            forms = self._state.forms_of(key)
            self.take_in(forms[-1] if forms else packed_key(key), packed_value(value))
        return answered(writes.answer)

    async def catch_up(self) -> bool:
        return False


class LocalRegistry:
    """`ask(method, path, body)` is one request."""

    def __init__(self, records: Topic | None = None, users: Path | None = None):
        self.state = RegistryState()
        self.topic = LocalTopic(self.state, records or [])
        guard = None if users is None else RegistryGuard(users, self.state)
        self.app = RegistryApp(RegistryApi(self.state), self.topic, guard)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return asyncio.run(asked(self.app, method, path, content, headers))

    def register(self, subject: str, schema: Any, **fields: Any) -> Answer:
        return self.ask("POST", f"/subjects/{subject}/versions", body_of(schema, **fields))

    def restarted(self) -> "LocalRegistry":
        """A registry that reads the same topic from its beginning."""
        return LocalRegistry(self.topic.records)


def body_of(schema: Any, **fields: Any) -> dict[str, Any]:
    return {"schema": schema if isinstance(schema, str) else json.dumps(schema), **fields}


async def asked(app: RegistryApp, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
    raw, _, query = path.partition("?")
    scope = {
        "type": "http", "method": method, "path": raw, "raw_path": raw.encode(), "query_string": query.encode(),
        "headers": [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found = dict(sent[0]["headers"])
    content = sent[1]["body"]
    return Answer(sent[0]["status"], json.loads(content) if content else None, found[b"content-type"].decode())


def record(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    """An Avro record; a field is (name, type) or (name, type, default)."""
    made = [{"name": one[0], "type": one[1], **({"default": one[2]} if len(one) > 2 else {})} for one in fields]
    return {"type": "record", "name": name, "fields": made, **more}
