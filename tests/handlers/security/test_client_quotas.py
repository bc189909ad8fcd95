"""DescribeClientQuotas and AlterClientQuotas over the wire: what is set is described, and what is wrong is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.protocol.apis import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from moldau.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from moldau.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.handlers.living import Living, Wire, run

INVALID = ErrorCode.INVALID_REQUEST
Entity = dict[str, str | None]
EXACT, DEFAULT, ANY = range(3)


def entry(entity: Entity, **values: float | None) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )


async def alter(wire: Wire, *entries: EntryData, validate_only: bool = False, version: int = 1) -> list[Any]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return list((await wire.ask(ALTER_CLIENT_QUOTAS, version, request)).entries)


async def describe(wire: Wire, *filters: tuple[str, int, str | None], strict: bool = False) -> Any:
    components = [ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in filters]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    answer = await wire.ask(DESCRIBE_CLIENT_QUOTAS, 1, request)
    assert answer.error_code == 0, answer
    return sorted(
        (
            sorted((one.entity_type, one.entity_name or "") for one in found.entity),
            {one.key: one.value for one in found.values},
        )
        for found in answer.entries
    )


A, A_APP = {"user": "a"}, {"user": "a", "client-id": "app"}
OF_A, OF_ALL = ([("user", "a")], {"producer_byte_rate": 5.0}), ([("user", "")], {"consumer_byte_rate": 6.0})
OF_A_APP = ([("client-id", "app"), ("user", "a")], {"request_percentage": 7.5})
OF_IP = ([("ip", "10.0.0.1")], {"connection_creation_rate": 8.0})


async def set_all(wire: Wire) -> None:
    answers = await alter(
        wire,
        entry(A, producer_byte_rate=5),
        entry({"user": None}, consumer_byte_rate=6),
        entry(A_APP, request_percentage=7.5),
        entry({"ip": "10.0.0.1"}, connection_creation_rate=8),
        version=0,
    )
    assert [one.error_code for one in answers] == [0] * 4


@pytest.mark.parametrize(
    ("filters", "strict", "expected"),
    [
        ([], False, [OF_A_APP, OF_IP, OF_ALL, OF_A]),
        ([], True, []),
        ([("user", EXACT, "a")], False, [OF_A_APP, OF_A]),
        ([("user", EXACT, "a")], True, [OF_A]),
        ([("user", ANY, None)], True, [OF_ALL, OF_A]),
        ([("user", DEFAULT, None)], False, [OF_ALL]),
        ([("user", ANY, None), ("client-id", EXACT, "app")], True, [OF_A_APP]),
        ([("client-id", DEFAULT, None)], False, []),
        ([("ip", ANY, None)], False, [OF_IP]),
        ([("ip", EXACT, "10.0.0.2")], False, []),
    ],
)
def test_what_is_set_is_described_by_filters(
    filters: Sequence[tuple[str, int, str | None]], strict: bool, expected: Any, tmp_path: Path
) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        await set_all(wire)
        assert await describe(wire, *filters, strict=strict) == expected

    run(scenario, tmp_path)


def test_quotas_are_replaced_removed_and_only_validated_and_outlive_the_broker(tmp_path: Path) -> None:
    async def first(alive: Living) -> None:
        wire = await alive.dial()
        await set_all(wire)
        await alter(
            wire, entry(A, producer_byte_rate=50, consumer_byte_rate=60), entry({"user": None}, consumer_byte_rate=None)
        )
        await alter(wire, entry(A, producer_byte_rate=7), validate_only=True)
        await alter(wire, entry(A, consumer_byte_rate=None, request_percentage=None))

    async def second(alive: Living) -> None:
        changed = ([("user", "a")], {"producer_byte_rate": 50.0})
        assert await describe(await alive.dial()) == [OF_A_APP, OF_IP, changed]

    run(first, tmp_path)
    run(second, tmp_path)


REFUSED: list[tuple[EntryData, str]] = [
    (entry({}, producer_byte_rate=1), "Invalid empty client quota entity"),
    (entry({"foo": "a"}, producer_byte_rate=1), "Unhandled client quota entity type: foo"),
    (entry({"user": ""}, producer_byte_rate=1), "Empty user not supported"),
    (entry({"user": "a" * 1025}, producer_byte_rate=1), "at most 1024 characters"),
    (entry({"ip": "10.0.0.1", "user": "a"}, connection_creation_rate=1), "an address has quotas alone"),
    (entry({"ip": "host.example"}, connection_creation_rate=1), "is not an IP address"),
    (entry(A, nonsense=1), "Invalid configuration key nonsense"),
    (entry(A, connection_creation_rate=1), "Invalid configuration key connection_creation_rate"),
    (entry({"ip": None}, producer_byte_rate=1), "Invalid configuration key producer_byte_rate"),
    (entry(A, producer_byte_rate=1.5), "must be a whole number"),
    (entry(A, producer_byte_rate=0), "must be above 0"),
    (entry(A, request_percentage=-1), "must be above 0"),
    (entry(A, request_percentage=float("nan")), "must be above 0"),
    (entry(A, consumer_byte_rate=float("inf")), "must be above 0"),
    (entry(A, consumer_byte_rate=1e19), "must be a whole number up to"),
    (entry({"ip": None}, connection_creation_rate=2**31), "must be a whole number up to 2147483647"),
]


def test_what_cannot_be_is_refused_with_a_sentence_and_the_rest_is_done(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        for wrong, sentence in REFUSED:
            answers = await alter(wire, wrong, entry({"client-id": "good"}, request_percentage=5))
            assert [one.error_code for one in answers] == [INVALID, 0], sentence
            assert sentence in answers[0].error_message
            assert len(answers[0].error_message) < 500
        assert await describe(wire) == [([("client-id", "good")], {"request_percentage": 5.0})]

    run(scenario, tmp_path)


def test_an_entity_that_is_named_twice_is_answered_once_and_not_changed(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        answers = await alter(
            wire, entry(A, producer_byte_rate=1), entry(A, consumer_byte_rate=1), entry(A, request_percentage=1)
        )
        assert [(one.error_code, one.error_message) for one in answers] == [
            (INVALID, "Ignoring duplicate entity user a")
        ]
        twice = entry(A, producer_byte_rate=1)
        twice.entity *= 2
        assert [(one.error_code, len(one.entity)) for one in await alter(wire, twice)] == [(0, 1)]
        twice.ops *= 2
        ((answer),) = await alter(wire, twice)
        assert "Duplicate quota key producer_byte_rate" in answer.error_message

    run(scenario, tmp_path)


def test_names_of_any_kind_are_described_as_they_were_set(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        for name in ("<default>", "..", "a/b %2F", "ü\0\n", "CN=x,O=y"):
            assert [one.error_code for one in await alter(wire, entry({"user": name}, request_percentage=5))] == [0]
            assert await describe(wire, ("user", EXACT, name)) == [([("user", name)], {"request_percentage": 5.0})]

    run(scenario, tmp_path)


def test_setting_and_removing_what_was_never_set_succeeds(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        assert [one.error_code for one in await alter(wire, entry(A, producer_byte_rate=None, nonsense=None))] == [0]
        assert [one.error_code for one in await alter(wire, entry(A))] == [0]
        assert await describe(wire) == []

    run(scenario, tmp_path)
