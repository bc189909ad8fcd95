"""Messages as lines of JSON with hexadecimal bytes: written from standard input, or read to standard output.

It is imported by programs in other projects' environments, so it knows nothing of ours.
"""

import json
import sys
from collections.abc import Callable
from typing import NamedTuple, Optional


class Message(NamedTuple):
    key: Optional[bytes]  # noqa: UP045
    value: Optional[bytes]  # noqa: UP045
    headers: list  # type: ignore[type-arg]
    timestamp_ms: int
    partition: int = -1
    offset: int = -1


def line(m: Message) -> str:
    headers = [[name, value.hex() if value is not None else None] for name, value in m.headers]
    key, value = (content.hex() if content is not None else None for content in (m.key, m.value))
    return json.dumps([key, value, headers, m.timestamp_ms, m.partition, m.offset])


def message(text: str) -> Message:
    key, value, headers, *rest = json.loads(text)
    pairs = [(name, None if content is None else bytes.fromhex(content)) for name, content in headers]
    content = [None if one is None else bytes.fromhex(one) for one in (key, value)]
    return Message(content[0], content[1], pairs, *rest)


def run(write: Callable[[str, str, list[Message], str], None], read: Callable[[str, str, int], list[Message]]) -> None:
    verb, address, topic, count, codec = sys.argv[1:]
    if verb == "write":
        write(address, topic, [message(text) for text in sys.stdin], codec)
    else:
        print("\n".join(map(line, read(address, topic, int(count)))))
