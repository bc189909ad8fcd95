"""What a client without TLS says when a listener with TLS hangs up."""

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
        (REPLY, "closed the connection$"),
    ],
)
def test_it_names_the_setting_unless_a_reply_has_come(answer: bytes, sentence: str) -> None:
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
