"""An empty array in any array field of any API ends nothing (CVE-2026-83525): the broker answers, and serves on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moldau.peers.address import Address
from moldau.peers.introduction import link_to_broker
from moldau.protocol import apis
from moldau.protocol.schema import specs
from tests.cluster.connected import PORT, Brokers, played
from tests.handlers.living import Living, Wire
from tests.handlers.transacting import run

Names = tuple[str, ...]
"""The names of the fields that lead to an array."""
TELLING = {apis.PRODUCE: {"acks": -1}, apis.FETCH: {"max_bytes": 1}}
"""What a request says besides its arrays: without it Produce has no reply."""


def arrays_of(message: type, version: int) -> Iterator[Names]:
    for name, spec, _ in specs(message):
        if spec.since <= version <= spec.until:
            if spec.array:
                yield (name,)
            if isinstance(spec.kind, type) and (spec.array or spec.nullable > version):
                yield from ((name, *path) for path in arrays_of(spec.kind, version))


def filled(message: type, version: int, empty: set[Names], at: Names = ()) -> Any:
    """A message whose arrays have one element each; those of `empty` have none."""
    made = message()
    for name, spec, default in specs(message):
        if not spec.since <= version <= spec.until:
            continue
        path = (*at, name)
        if isinstance(spec.kind, type) and (spec.array or spec.nullable > version):
            one = filled(spec.kind, version, empty, path)
            setattr(made, name, ([] if path in empty else [one]) if spec.array else one)
        elif spec.array:
            one = "t" if spec.kind == "string" else 0
            setattr(made, name, [] if path in empty else [one])
        elif spec.kind == "string" and default == "":
            setattr(made, name, "t")
    return made


def variants(api: apis.Api, version: int) -> list[tuple[str, Any]]:
    """Requests with one empty array each, and one in which all are empty."""
    paths = list(arrays_of(api.request, version))
    emptied = [*({path} for path in paths), set(paths)] if paths else []
    made = []
    for empty in emptied:
        request = filled(api.request, version, empty)
        for name, value in TELLING.get(api, {}).items():
            setattr(request, name, value)
        made.append((" and ".join(".".join(path) for path in sorted(empty)), request))
    return made


def test_empty_arrays_in_every_field_of_every_api_are_answered(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        for api in apis.SERVED.values():
            for version in sorted({max(api.low, api.lowest), api.high}):
                await survives(wire, api, version)

    run(scenario, tmp_path)


async def survives(wire: Wire, api: apis.Api, version: int) -> None:
    for name, request in variants(api, version):
        try:
            answer = await wire.ask(api, version, request)
        except (asyncio.IncompleteReadError, ConnectionError) as closed:
            raise AssertionError(f"{api.name} v{version} with an empty {name} closed its connection") from closed
        assert "error_code=-1," not in repr(answer), (api.name, version, name)


def test_they_are_answered_between_brokers() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        link = await link_to_broker(Address("host1", PORT), 1, brokers[2].identity, 5000)
        for api in apis.BETWEEN_BROKERS.values():
            link.versions.add({api.key: (api.low, api.high)})
            for _, request in variants(api, api.high):
                await link.call(api, request)
        assert not link.closed

    played(scenario)
