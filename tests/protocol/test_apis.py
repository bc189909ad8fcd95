"""docs/protocol.md has the APIs and the versions that the table has."""

import re
from pathlib import Path

from moldau.protocol.apis import APIS, BETWEEN_BROKERS, OURS, SUPPORTED, Api
from moldau.protocol.schema import NEVER

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
ROWS = [(int(key), cells.split(" | ")) for key, cells in re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)]


def shown(api: Api) -> list[str]:
    """Name, versions and first flexible version, as the page writes them."""
    versions = f"{api.low}" if api.low == api.high else f"{api.low}–{api.high}"
    return [api.name, versions, "none" if api.flexible == NEVER else str(api.flexible)]


def test_the_page_has_each_advertised_api_with_its_versions_in_the_order_of_keys() -> None:
    found = [(key, [cells[0], re.split("[ ,]", cells[1])[0], cells[2]]) for key, cells in ROWS if key in APIS]
    assert found == [(key, shown(api)) for key, api in sorted(APIS.items())]


def test_the_page_names_the_apis_that_are_not_advertised() -> None:
    found = {key: cells[0].removesuffix(" (ours)") for key, cells in ROWS if key not in APIS}
    assert found == {api.key: api.name for api in (*BETWEEN_BROKERS.values(), *OURS.values())}
    assert len(ROWS) == len(SUPPORTED)
