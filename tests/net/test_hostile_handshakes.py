"""Bytes that are no handshake, or a damaged one: each ends that connection, and the next client is served."""

import asyncio
import contextlib
import logging
import random
import ssl
from pathlib import Path

import pytest

from harness.certificates import Authority
from harness.tiers import examples, seed_or
from tests.net.test_acceptor import LOOPS, Tls, asked, run, serving, trusting

AT_ONCE = 50
SECONDS_MAX = 900


def hello(authority: Authority, version: ssl.TLSVersion) -> bytes:
    """The first bytes of a real client."""
    context = trusting(authority)
    context.minimum_version = context.maximum_version = version
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


def damaged(random: random.Random, greetings: list[bytes]) -> bytes:
    data = bytearray(random.choice(greetings))
    kind = random.randrange(5)
    if kind == 0:
        return random.randbytes(random.randrange(2000))
    if kind == 1:  # bits flipped
        for _ in range(random.randrange(1, 10)):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == 2:  # cut off
        del data[random.randrange(len(data)) :]
    elif kind == 3:  # lengths changed
        at = random.choice((3, 6, random.randrange(len(data) - 2)))
        data[at : at + 2] = random.randbytes(2)
    else:  # more behind it
        data += random.randbytes(random.randrange(100)) + bytes(random.choice(greetings))
    return bytes(data)


async def thrown(port: int, data: bytes, waits: bool) -> None:
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        if waits:
            writer.write_eof()
            await reader.read()
        writer.close()


@pytest.mark.timeout(SECONDS_MAX + 60)
@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_damaged_handshakes_end_their_connections_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, loop: object
) -> None:
    caplog.set_level(logging.INFO)
    authority = Authority(tmp_path)
    chance = random.Random(seed_or(7))
    greetings = [hello(authority, version) for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]

    async def scenario() -> None:
        async with serving(Tls(authority, ssl.CERT_OPTIONAL)) as (server, port):
            for _ in range(examples(300, 300) // AT_ONCE):
                thrown_now = [thrown(port, damaged(chance, greetings), chance.random() < 0.8) for _ in range(AT_ONCE)]
                await asyncio.gather(*thrown_now)
                assert await asked(port, trusting(authority)) == b"ping"
            while server.shaking or server.connections:
                await asyncio.sleep(0.01)

    run(scenario(), loop, SECONDS_MAX)  # type: ignore[arg-type]
    assert [record for record in caplog.records if record.exc_info or record.levelno > logging.INFO] == []
