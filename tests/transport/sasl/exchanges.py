"""Runs the two ends of an exchange against each other."""

from moldau.transport.sasl.exchange import Authenticated, ClientExchange, SaslFailed, ServerExchange


def run(client: ClientExchange, server: ServerExchange) -> Authenticated:
    """Who is authenticated in the end. Raises `SaslFailed`, of either end."""
    message: bytes | None = client.first()
    for _ in range(5):
        assert message is not None
        answer = server.answer(message)
        message = client.answer(answer)
        if message is None:
            assert server.authenticated is not None, "the client ends only when the server has"
            return server.authenticated
    raise AssertionError("no end")


def refusal(client: ClientExchange, server: ServerExchange) -> str:
    """How an exchange ends that fails."""
    try:
        run(client, server)
    except SaslFailed as failed:
        assert server.authenticated is None
        return str(failed)
    raise AssertionError("the exchange ended well")
