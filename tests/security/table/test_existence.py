"""A client without rights cannot find out what exists: the reply about a name that exists and about one that does not
are the same bytes but for the name.

Topics that are named by id are left out: an id that exists cannot be guessed, and Kafka answers an unknown one by
UNKNOWN_TOPIC_ID before it looks at rights. So are delegation tokens, which are named by their secrets.
"""

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.apis import APIS
from tests.security.table.cases import (
    CONSUMERS,
    GONE,
    GROUP,
    HERE,
    NO_GROUP,
    NO_OWNER,
    NO_TRANSACTION,
    OWNER,
    TRANSACTION,
    UNKNOWN_ID,
)
from tests.security.table.playing import Asked, Player, ours, table
from tests.security.table.rows import ROWS

OTHERS = {GROUP: NO_GROUP, TRANSACTION: NO_TRANSACTION, OWNER: NO_OWNER}
EXISTING = (*OTHERS, CONSUMERS)
NAMES = (CONSUMERS, HERE, GONE, *OTHERS, *OTHERS.values())
BLANK = b"...."


def about(value: Any, exists: bool, others: Mapping[str, str] = OTHERS) -> Any:
    """The fields of a request, about what exists or what does not: elements of lists about the others are left out.
    `others` maps each group and transactional id that exists to one that does not."""
    if isinstance(value, dict):
        return {name: about(one, exists, others) for name, one in value.items()}
    if isinstance(value, list):
        if not any(_names(one, GONE) for one in value):
            return [about(one, exists, others) for one in value]
        present = HERE if any(_names(one, HERE) for one in value) else next(n for n in EXISTING if _names(value[0], n))
        return [about(one, exists, others) for one in value if not _names(one, GONE if exists else present)]
    return others.get(value, value) if not exists and isinstance(value, str) else value


def _names(element: Any, name: str) -> bool:
    values = [*element.values()] if isinstance(element, dict) else [element]
    return any(isinstance(one, str) and one == name for one in values)


def has_ids(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(has_ids, value.values() if isinstance(value, dict) else value))
    return isinstance(value, uuid.UUID)


def turned(value: Any, existing: Sequence[str], other: str = HERE) -> Any:
    """The same with the two names the other way round: one that does not exist, and one of the `existing`."""
    if isinstance(value, dict):
        return {name: turned(one, existing, other) for name, one in value.items()}
    if isinstance(value, list):
        here = next((n for n in existing if any(_names(one, n) for one in value)), other)
        return [turned(one, existing, here) for one in value]
    return {other: GONE, GONE: other}.get(value, value) if isinstance(value, str) else value


def blanked(reply: bytes | None) -> bytes | None:
    for name in NAMES if reply is not None else ():
        reply = reply.replace(name.encode(), BLANK)
    return reply


def naming() -> Iterator[Asked]:
    """The requests of the table that name something the client has no right on, in each version: without any rights, or
    a topic with rights on groups and transactional ids alone."""
    versions = {key: (api.low, api.high) for key, api in APIS.items()}
    for asked in table(versions):
        if not any(right.split()[0] in ("topic", "cluster") or GONE in right for right in asked.rights):
            fields = asked.case.of(asked.version, UNKNOWN_ID)
            if asked.rights and f"'{HERE}'" not in repr(fields):
                continue
            if about(fields, True, others_of(asked)) != about(fields, False, others_of(asked)) and not has_ids(fields):
                yield asked


def others_of(asked: Asked) -> Mapping[str, str]:
    return {} if asked.rights else OTHERS


async def differences(folder: Path) -> list[str]:
    found = []
    async with ours(folder) as player:
        for asked in naming():
            await player.grant(asked.rights)
            fields, others = asked.case.of(asked.version, player.here), others_of(asked)
            there, not_there = [await reply(player, asked, about(fields, exists, others)) for exists in (True, False)]
            existing = (HERE,) if asked.rights else (HERE, *EXISTING)
            both, both_turned = [await reply(player, asked, one) for one in (fields, turned(fields, existing))]
            if there != not_there or both != both_turned:
                found.append(f"{asked.api.name} {asked.version}, {asked.case.name}: {there!r} {not_there!r}")
    return found


async def reply(player: Player, asked: Asked, fields: Any) -> bytes | None:
    line = await player.line_of(asked.case)
    return blanked(await player.exchange(asked.api, asked.version, fields, line))


def test_replies_about_what_exists_and_what_does_not_are_the_same_bytes(tmp_path: Path) -> None:
    found = asyncio.run(differences(tmp_path))
    assert not found, "\n".join(found)


NAMELESS = {16, 17, 29, 30, 31, 35, 36, 39, 40, 46, 48, 49, 50, 51, 60, 64, 66, 74}
"""APIs that name no topic, group, transactional id or owner, or only where no right is asked for it."""


def test_every_api_that_takes_a_name_is_asked() -> None:
    asked = {one.api.key for one in naming()}
    with_cases = {key for key, row in ROWS.items() if isinstance(row, tuple)}
    assert with_cases - asked == NAMELESS


@pytest.mark.parametrize("exists", [True, False])
def test_a_request_is_about_one_of_them(exists: bool) -> None:
    fields = {"group_id": GROUP, "topics": [{"name": HERE}, {"name": GONE}], "groups": [GROUP, GONE], "users": ["ann"]}
    name, group, other = (HERE, GROUP, GROUP) if exists else (GONE, NO_GROUP, GONE)
    expected = {"group_id": group, "topics": [{"name": name}], "groups": [other], "users": ["ann"]}
    assert about(fields, exists) == expected
