"""Client quotas that do not exist: never found, removed at will, and never set."""

from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.security import client_quotas
from moldau.protocol.apis import ALTER_CLIENT_QUOTAS
from moldau.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from tests.requests.calling import call

CALL = call(ALTER_CLIENT_QUOTAS, 1)
ALICE = [EntityData(entity_type="user", entity_name="alice")]


def altered(*entries: tuple[list[EntityData], bool], validate_only: bool = False) -> list[tuple[int, Any]]:
    asked = [
        EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1.0, remove=removes)])
        for entity, removes in entries
    ]
    reply = client_quotas.alter(AlterClientQuotasRequest(entries=asked, validate_only=validate_only), CALL)
    return [(one.error_code, one.entity) for one in reply.entries]


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_quota_is_not_set_since_nothing_would_be_limited(validate_only: bool) -> None:
    assert altered((ALICE, False), (ALICE, True), validate_only=validate_only) == [
        (ErrorCode.INVALID_REQUEST, ALICE),
        (ErrorCode.NONE, ALICE),
    ]


def test_a_quota_of_nothing_or_of_what_nobody_knows_is_not_even_removed() -> None:
    unknown = [EntityData(entity_type="nonsense", entity_name="a")]
    assert [code for code, _ in altered(([], True), (unknown, True))] == [ErrorCode.INVALID_REQUEST] * 2
