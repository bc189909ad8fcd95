"""Texts of schemas, before anything is known of them."""

import json
from typing import Any

from moldau.client.registry.schemas import TEXT_CHARACTERS_MAX
from moldau.registry.refusals import invalid_schema


def check_length(text: str) -> None:
    """Raises `Refused`."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise invalid_schema(f"it has more than {TEXT_CHARACTERS_MAX} characters")


def json_in(text: str) -> Any:
    """The value of a text. Raises `Refused` if it is too long or nests too deeply, `ValueError` if it is not JSON."""
    check_length(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise invalid_schema("it nests too deeply") from None
