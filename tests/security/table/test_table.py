"""Each API answers a client that lacks rights exactly as Apache Kafka 4.3.1 did when it was asked."""

import asyncio
from pathlib import Path

import pytest

from moldau.handlers.rights import RIGHTS
from moldau.protocol.apis import APIS
from tests.security.table.__main__ import VERSION, of_ours
from tests.security.table.accepted import ACCEPTED
from tests.security.table.answers import Answer, saved
from tests.security.table.cases import Unasked
from tests.security.table.rows import ROWS

HEADER, RECORDED = saved(VERSION)
OFFERED: dict[int, tuple[int, int]] = {int(key): (low, high) for key, (low, high) in HEADER["versions"].items()}


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, str, str], Answer]:
    return {one[:3]: one for one in asyncio.run(of_ours(OFFERED))}


def test_every_api_has_its_row() -> None:
    missing = [api.name for api in RIGHTS if api.key not in ROWS]
    assert not missing, f"no row in tests/security/table for {missing}: add one and record Kafka's answers"


def test_an_api_that_asks_for_rights_has_cases_unless_no_client_can_send_it() -> None:
    silent = [
        api.name
        for api, rights in RIGHTS.items()
        if rights != ((), ()) and api.key in APIS and api.key in OFFERED and isinstance(ROWS[api.key], Unasked)
    ]
    assert not silent


def test_every_case_is_recorded_and_every_recorded_answer_is_asked(answers: dict[tuple[str, str, str], Answer]) -> None:
    assert answers.keys() == {one[:3] for one in RECORDED}, (
        "the table has changed: `python -m tests.security.table --write`"
    )


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: " ".join(one[:3]))
def test_the_answer_is_that_of_kafka(recorded: Answer, answers: dict[tuple[str, str, str], Answer]) -> None:
    ours = answers[recorded[:3]].by_versions
    if recorded[:3] in ACCEPTED:
        assert ours != recorded.by_versions, "accepted, but there is no difference"
    else:
        assert ours == recorded.by_versions


def test_a_recording_says_how_it_was_made() -> None:
    assert HEADER["kafka"] == VERSION and HEADER["command"] == "python -m tests.security.table --write"
    assert HEADER["recorded"] > "2026" and Path(__file__).with_name("recordings").is_dir()
