"""A scrape of a broker's metrics as Prometheus makes it, and what is in it."""

import asyncio
import gzip
import re
from collections.abc import Mapping
from typing import NamedTuple

from moldau.broker import Broker

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


class Scraped(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        body = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        return body.decode()


class ScrapedSample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


async def exchanged(port: int, request: bytes) -> bytes:
    """What the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.transport.abort()


async def get(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> Scraped:
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    answer = await exchanged(port, f"{method} {path} HTTP/1.1\r\nHost: here\r\n{named}\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Scraped(int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, body)


async def scrape(broker: Broker, **headers: str) -> list[ScrapedSample]:
    assert broker.metrics is not None
    answer = await get(broker.metrics.port, **headers)
    assert answer.status == 200, answer
    return samples(answer.text)


def samples(text: str) -> list[ScrapedSample]:
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match is not None, line
            found.append(ScrapedSample(match[1], dict(LABEL.findall(match[2] or "")), float(match[3])))
    return found


def value(found: list[ScrapedSample], name: str, **labels: object) -> float:
    """The value of the one sample with that name and exactly these labels."""
    wanted = {key: str(one) for key, one in labels.items()}
    (only,) = [one.value for one in found if one.name == name and one.labels == wanted]
    return only
