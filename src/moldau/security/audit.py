"""The audit log of access rights: a line of JSON for each denial that refuses something, written off the loop.

    {"time": "2026-11-28T12:00:00.123Z", "decision": "denied", "principal": "User:ann", "host": "10.0.0.7",
     "operation": "Read", "resource": "Topic", "name": "orders", "api": "Fetch", "listener": "PLAINTEXT",
     "client_id": "app", "rule": "DefaultDeny"}

`rule` is what decided: "DefaultDeny" if no ACL allows it, or "Acl", then with the ACL that denies it. Lines wait in a
bounded queue. What does not fit is counted, and a line says so: {"time": ..., "dropped": 17}.

The lines go into a file of their own (`audit.log.file`), or else to the logger `moldau.audit`, into the broker's log.
"""

import asyncio
import io
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from moldau.cluster.state.acls import OPERATIONS, RESOURCE_TYPES
from moldau.errors import ConfigError
from moldau.notices import Notices
from moldau.protocol.apis import SUPPORTED
from moldau.requests.access import Right
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.security.rules import RightDecision

WAITING_MAX = 10_000
"""Lines that wait to be written."""
TOGETHER = 1000
NAME_MAX = 300
notices = Notices(logging.getLogger(__name__))
LOGGER = "moldau.audit"
Write = Callable[[Sequence[str]], None]


class Denial(NamedTuple):
    """One denial, with what is needed of its call."""

    at_ms: int
    principal: str
    host: str
    listener: str
    client_id: str | None
    key: int
    right: Right
    name: str
    decision: RightDecision


class Audit:
    """`write` is called off the loop, with lines in order. Belongs to one loop."""

    def __init__(self, runtime: Runtime, write: Write):
        self.dropped = 0
        """Denials that were not written since the start."""
        self._runtime = runtime
        self._write = write
        self._waiting: deque[Denial] = deque()
        self._told = 0
        """Of those that were dropped: how many a line has said."""
        self._writing: asyncio.Future[None] | None = None

    def denied(self, call: Call, right: Right, name: str, decision: RightDecision) -> None:
        """Note a denial."""
        if len(self._waiting) < WAITING_MAX:
            self._note(call, right, name, decision)
        else:
            self.dropped += 1
        self._begin()

    def _note(self, call: Call, right: Right, name: str, decision: RightDecision) -> None:
        session = call.session
        client_id = None if call.client_id is None else call.client_id[:NAME_MAX]
        at_ms = self._runtime.clock.now_ms()
        self._waiting.append(
            Denial(
                at_ms,
                session.principal[:NAME_MAX],
                session.peer.host,
                session.listener,
                client_id,
                call.key,
                right,
                name[:NAME_MAX],
                decision,
            )
        )

    def _begin(self) -> None:
        """Write what waits, unless that goes on already: a failure has ended it, and the next denial tries again."""
        if self._writing is None and (self._waiting or self.dropped > self._told):
            self._writing = asyncio.ensure_future(self._write_all())

    async def close(self) -> None:
        """Write what waits."""
        self._begin()
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        try:
            while self._waiting or self.dropped > self._told:
                some = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
                before, self._told = self._told, self.dropped
                try:
                    now_ms = self._runtime.clock.now_ms()
                    await self._runtime.run(partial(self._write_some, some, self._told - before, now_ms))
                except OSError as error:
                    self.dropped += len(some)
                    self._told = before
                    notices.error("", "denials cannot be written into the audit log: %s", error.strerror or error)
                    return
        finally:
            self._writing = None

    def _write_some(self, denials: Sequence[Denial], dropped: int, now_ms: int) -> None:
        lines = [json.dumps(fields_of(one)) for one in denials]
        if dropped:
            lines.append(json.dumps({"time": _time(now_ms), "dropped": dropped}))
        self._write(lines)


def fields_of(one: Denial) -> dict[str, Any]:
    """What a line says of a denial."""
    api = SUPPORTED.get(one.key)
    fields: dict[str, Any] = {
        "time": _time(one.at_ms),
        "decision": "denied",
        "principal": one.principal,
        "host": one.host,
        "operation": OPERATIONS[one.right.operation],
        "resource": RESOURCE_TYPES[one.right.resource_type],
        "name": one.name,
        "api": api.name if api is not None else str(one.key),
        "listener": one.listener,
        "client_id": one.client_id,
        "rule": one.decision.rule,
    }
    if one.decision.acl is not None:
        pattern, entry = one.decision.acl
        fields["acl"] = {
            "pattern": pattern.pattern_type.name.lower(),
            "name": pattern.name[:NAME_MAX],
            "principal": entry.principal[:NAME_MAX],
            "host": entry.host,
            "operation": OPERATIONS[entry.operation],
            "permission": entry.permission.name.lower(),
        }
    return fields


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def audit_writer(path: str | None) -> tuple[Write, Callable[[], None]]:
    """Writes lines, and ends that: into a file that nobody but the broker's user can read, or to the logger. Raises
    `ConfigError`."""
    if not path:
        audit_logger = logging.getLogger(LOGGER)
        return lambda lines: _log(audit_logger, lines), lambda: None
    try:
        handler = _private_file(path)
    except OSError as error:
        raise ConfigError(f"audit.log.file {path} cannot be written: {error.strerror or error}") from None

    def write(lines: Sequence[str]) -> None:
        for line in lines:
            handler.handle(logging.makeLogRecord({"msg": line, "levelno": logging.INFO}))

    return write, handler.close


def _log(audit_logger: logging.Logger, lines: Sequence[str]) -> None:
    for line in lines:
        audit_logger.info("%s", line)


def _private_file(path: str) -> logging.Handler:
    import logging.handlers
    import os

    class Watched(logging.handlers.WatchedFileHandler):
        """Opened anew when it was moved away; an error is the writer's."""

        def _open(self) -> io.TextIOWrapper:
            return open(self.baseFilename, "a", encoding="utf-8", opener=_private)

        def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
            raise  # noqa: PLE0704

    def _private(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600)

    handler = Watched(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler
