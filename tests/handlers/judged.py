"""What tests of rights have in common: which versions they ask in, and what they compare."""

from dataclasses import fields, is_dataclass
from typing import Any

from moldau.handlers.rights import RIGHTS
from moldau.protocol.apis import Api
from moldau.requests.access import Right
from tests.requests.calling import Denying

NO_OPERATIONS = -2147483648


def some_versions(api: Api) -> list[int]:
    """The lowest, a middle and the highest."""
    return sorted({api.low, (api.low + api.high) // 2, api.high})


def parts_of(api: Api) -> set[Right]:
    """The rights that the API's handler may ask for."""
    return {*RIGHTS[api].parts}


def asked_rights(*authorizers: Denying) -> set[Right]:
    return {right for one in authorizers for right, _ in one.asked}


def blanked(message: Any, name: str) -> Any:
    """The message as plain values, with "" wherever it has that name."""
    if is_dataclass(message):
        return {field.name: blanked(getattr(message, field.name), name) for field in fields(message)}
    if isinstance(message, list):
        return [blanked(one, name) for one in message]
    return "" if message == name else message
