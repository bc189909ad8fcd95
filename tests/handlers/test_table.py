"""A handler's modules are imported in the executor, at the first request of its API: the loop imports none of them."""

import subprocess
import sys
from typing import Any

import pytest

from moldau.coordinators.importing import MODULES
from moldau.handlers.table import TABLE
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from moldau.protocol.apis import JOIN_GROUP, Api

IMPORTS = """
import sys
from moldau.handlers.table import TABLE
from moldau.protocol.apis import JOIN_GROUP
TABLE[JOIN_GROUP].import_all()
print(*(name for name in sys.modules if name.startswith("moldau.")))
"""


class Anything:
    """A part of a broker that no handler is made to use."""

    def __getattr__(self, name: str) -> "Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: object) -> "Anything":
        return self


class Parts(Anything):
    """`made`: the internal topics whose coordinators were asked for."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.followers = None

    def groups(self) -> Anything:
        self.made.append(OFFSETS_TOPIC)
        return Anything()

    def transactions(self) -> Anything:
        self.made.append(TRANSACTIONS_TOPIC)
        return Anything()


@pytest.mark.parametrize("api", TABLE, ids=lambda api: api.name)
def test_a_row_names_the_coordinator_that_its_handler_is_made_with(api: Api) -> None:
    row, parts = TABLE[api], Parts()
    if row.arguments is not None:
        asked: Any = parts
        row.arguments(asked)
    assert parts.made == ([] if row.coordinator is None else [row.coordinator])


def test_the_modules_of_the_coordinator_are_imported_with_those_of_the_handler() -> None:
    imported = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {*MODULES[OFFSETS_TOPIC], TABLE[JOIN_GROUP].handler.partition(":")[0]} <= {*imported}
    assert not {*MODULES[TRANSACTIONS_TOPIC]} & {*imported}
