"""What a client says when a broker refuses to begin a login."""

import pytest

from moldau.errors import ErrorCode, KafkaError
from moldau.peers.login import login_steps
from moldau.protocol.messages.sasl_handshake import SaslHandshakeResponse
from moldau.transport.jaas import Login
from moldau.transport.sasl.plain import PlainClient


def test_a_listener_without_sasl_is_told_from_a_wrong_password() -> None:
    steps = login_steps("PLAIN", PlainClient(Login("alice", "secret")))
    next(steps)
    with pytest.raises(
        KafkaError, match="takes no login by PLAIN on this connection: use the port of a listener"
    ) as no:
        steps.send(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]))
    assert no.value.code is ErrorCode.ILLEGAL_SASL_STATE and "secret" not in str(no.value)
