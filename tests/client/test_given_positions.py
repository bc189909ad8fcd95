"""Positions that callers give are checked before anything is sent, with one sentence for each mistake."""

import pytest

from moldau.client.given_positions import EPOCH_MAX, OFFSET_MAX, position_of
from moldau.errors import ConfigError
from moldau.names import OffsetAndMetadata


@pytest.mark.parametrize(
    ("given", "position"),
    [
        (0, OffsetAndMetadata(0)),
        (OFFSET_MAX, OffsetAndMetadata(OFFSET_MAX)),
        (OffsetAndMetadata(5, "five", EPOCH_MAX), OffsetAndMetadata(5, "five", EPOCH_MAX)),
        (OffsetAndMetadata(5, leader_epoch=-1), OffsetAndMetadata(5)),
    ],
)
def test_a_number_and_a_position_are_taken(given: object, position: OffsetAndMetadata) -> None:
    assert position_of(given, "the offset") == position


@pytest.mark.parametrize("given", [-1, True, 1.5, "5", None, 2**63, OffsetAndMetadata(-1), (5, "five", None)])
def test_what_is_not_an_offset_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="the offset is a number from 0 to"):
        position_of(given, "the offset")


@pytest.mark.parametrize("epoch", [-2, 2**31, "1", True])
def test_what_is_not_a_leader_epoch_is_refused(epoch: object) -> None:
    with pytest.raises(ConfigError, match="the offset has a leader epoch that is not a number from 0 to"):
        position_of(OffsetAndMetadata(5, "", epoch), "the offset")  # type: ignore[arg-type]


def test_metadata_are_text() -> None:
    with pytest.raises(ConfigError, match="metadata that are no text"):
        position_of(OffsetAndMetadata(5, b"five"), "the offset")  # type: ignore[arg-type]
