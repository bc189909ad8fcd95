"""A schema registry for tests: the part of Confluent's REST interface that clients need, in memory, without checks of
compatibility. The tests with a real one are in `tests/clients/test_schema_registry.py`.

`answers` replaces the next answers: (status, body) pairs, in their order; a status of 0 says nothing for ever.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import unquote


class Request(NamedTuple):
    method: str
    path: str
    authorization: str | None


class SmallRegistry:
    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[tuple[int, bytes]] = []
        self._schemas: list[str] = []
        self._subjects: dict[str, list[int]] = {}
        self._deleted: set[str] = set()
        self._stopped = threading.Event()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                registry.requests.append(Request(self.command, self.path, self.headers.get("Authorization")))
                if registry.answers:
                    status, body = registry.answers.pop(0)
                else:
                    status, tree = registry.answer(self.command, self.path, json.loads(content or b"null"))
                    body = json.dumps(tree).encode()
                if not status:
                    registry._stopped.wait()
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "SmallRegistry":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if method == "GET" and len(parts) > 2 and parts[1] in self._deleted and "deleted=true" not in query:
            return 404, missing(40401)
        match method, parts:
            case "GET", ["subjects"]:
                return 200, list(self._subjects)
            case "POST", ["subjects", subject, "versions"]:
                return 200, {"id": self._register(subject, json.dumps(body))}
            case "POST", ["subjects", subject]:
                ids = self._subjects.get(subject, [])
                found = [number for number in ids if self._schemas[number - 1] == json.dumps(body)]
                return self._version(subject, ids.index(found[0]) + 1) if found else (404, missing(40403))
            case "DELETE", ["subjects", subject]:
                self._deleted.add(subject)
                return 200, list(range(1, len(self._subjects[subject]) + 1))
            case "GET", ["subjects", subject, "versions"]:
                ids = self._subjects.get(subject, [])
                return (200, list(range(1, len(ids) + 1))) if ids else (404, missing(40401))
            case "GET", ["subjects", subject, "versions", version]:
                ids = self._subjects.get(subject, [])
                if not ids:
                    return 404, missing(40401)
                return self._version(subject, len(ids) if version == "latest" else int(version))
            case "GET", ["schemas", "ids", number]:
                if not 0 < int(number) <= len(self._schemas):
                    return 404, missing(40403)
                return 200, json.loads(self._schemas[int(number) - 1])
        return 405, {"error_code": 405, "message": "not in this small registry"}

    def _register(self, subject: str, schema: str) -> int:
        if schema not in self._schemas:
            self._schemas.append(schema)
        number = self._schemas.index(schema) + 1
        ids = self._subjects.setdefault(subject, [])
        if number not in ids:
            ids.append(number)
        return number

    def _version(self, subject: str, version: int) -> tuple[int, Any]:
        ids = self._subjects[subject]
        if not 0 < version <= len(ids):
            return 404, missing(40402)
        number = ids[version - 1]
        return 200, {"subject": subject, "version": version, "id": number, **json.loads(self._schemas[number - 1])}


def missing(code: int) -> dict[str, Any]:
    return {"error_code": code, "message": "not found"}
