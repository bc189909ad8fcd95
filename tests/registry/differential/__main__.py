"""Records Apicurio's answers: `python -m tests.registry.differential`. It needs Java and Maven."""

import json
import tempfile
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from harness import apicurio
from tests.registry.differential.recorded import RECORDING, play, saved

JSON = "application/vnd.schemaregistry.v1+json"


def asking(url: str) -> Any:
    """Asks the registry at this address."""

    def ask(method: str, path: str, body: Any) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = Request(f"{url}{path}", content, {"Content-Type": JSON}, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return answer.status, _read(answer.read())
        except HTTPError as refused:
            with refused:
                return refused.code, _read(refused.read())

    return ask


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, apicurio.running(Path(folder)) as (url, _):
        RECORDING.write_text(saved(play(asking(url))), encoding="utf-8")
