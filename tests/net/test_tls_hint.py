"""What a client says of an answer that is not Kafka's: of a listener with TLS, of a web server, of another program."""

import asyncio

import pytest

from harness.patience import within
from moldau.errors import NetworkException
from moldau.net.connection import dial

ALERT = bytes.fromhex("15030300020246")
REPLY = bytes.fromhex("0000000400000001")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", r"closed the connection before its first reply; its listener may want TLS \(security.protocol SSL or "),
        (ALERT, "answered with a TLS alert; its listener may want TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers in HTTP: this is the port of a web server, such as metrics, "),
        (b"<!DOCTYPE HTML>\n", "answers in HTTP: this is the port of a web server"),
        (b"SSH-2.0-x\r\n", "answered with text that begins with 'SSH-': it is not a Kafka broker"),
        (b"\x7f\xff\xff\xff", "sent a reply of 2147483647 bytes, and this client takes"),
        (REPLY, "closed the connection$"),
    ],
)
def test_it_says_what_answered_unless_a_reply_has_come(answer: bytes, sentence: str) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(answer)
        if answer == REPLY:
            await reader.readexactly(8)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        async with server:
            connection = await dial(*server.sockets[0].getsockname())
            while True:
                number = connection.next_correlation_id()
                frame = b"\0\0\0\4" + number.to_bytes(4, "big")
                await within(connection.send(number, [frame], 600_000))

    with pytest.raises(NetworkException, match=sentence):
        asyncio.run(scenario())


def test_a_client_that_takes_very_large_replies_knows_a_web_server_too() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n")
        await reader.read()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            connection = await dial(*server.sockets[0].getsockname(), max_reply_bytes=2**31 - 1)
            number = connection.next_correlation_id()
            await within(connection.send(number, [b"\0\0\0\4" + number.to_bytes(4, "big")], 600_000))

    with pytest.raises(NetworkException, match="answers in HTTP"):
        asyncio.run(scenario())
