"""Where the brokers of `moldau cluster start` listen."""

import pytest

from moldau.cli.cluster.starting import PORT_MAX, first_address
from moldau.cli.command_line import UsageError


@pytest.mark.parametrize(
    ("listeners", "host", "port", "address"),
    [
        ("", None, None, ("localhost", 9092)),
        ("PLAINTEXT://127.0.0.1:19092", None, None, ("127.0.0.1", 19092)),
        ("SSL://:9093,INSIDE://localhost:9094", None, None, ("localhost", 9093)),
        ("SSL://[::1]:9093", None, None, ("::1", 9093)),
        ("SSL://localhost:9093", "127.0.0.1", 0, ("127.0.0.1", 0)),
        ("nonsense", None, None, ("localhost", 9092)),
    ],
)
def test_the_command_line_goes_before_listeners(
    listeners: str, host: str | None, port: int | None, address: tuple[str, int]
) -> None:
    assert first_address(listeners, host, port) == address


def test_a_port_without_room_for_the_other_brokers_is_refused() -> None:
    with pytest.raises(UsageError, match=f"at most {PORT_MAX}"):
        first_address("PLAINTEXT://localhost:65535", None, None)
