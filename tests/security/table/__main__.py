"""`python -m tests.security.table`: our answers beside those of Kafka; `--write` records Kafka's, with mvn and java."""

import argparse
import asyncio
import datetime
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness import apache_kafka
from harness.listening import free_port
from tests.security.table.answers import Answer, grouped, plain, save, saved
from tests.security.table.playing import LOGINS, OF_KAFKA, PLAIN_LISTENER, SETTINGS, Player, Sockets, ours, table

VERSION = "4.3.1"


async def asked_of(player: Player, versions: dict[int, tuple[int, int]]) -> list[Answer]:
    found = []
    for one in table(versions):
        found.append((one, plain(await player.answer(one), one.version, player.here)))
    return grouped(found)


async def of_kafka(ports: Mapping[str, int]) -> tuple[dict[int, tuple[int, int]], list[Answer]]:
    wires = Sockets(ports)
    player = Player(wires)
    await player.prepare()
    try:
        return player.versions, await asked_of(player, player.versions)
    finally:
        await wires.close()


async def of_ours(versions: dict[int, tuple[int, int]]) -> list[Answer]:
    with tempfile.TemporaryDirectory(prefix="moldau-") as folder:
        async with ours(Path(folder)) as player:
            return await asked_of(player, versions)


def write() -> None:
    logins = free_port()
    own = {**apache_kafka.FOR_KAFKA, **SETTINGS, **OF_KAFKA, "listeners": OF_KAFKA["listeners"] % logins}
    with apache_kafka.running(own, version=VERSION) as broker:
        versions, answers = asyncio.run(of_kafka({PLAIN_LISTENER: broker.port, LOGINS: logins}))
    header = {
        "kafka": VERSION,
        "recorded": datetime.date.today().isoformat(),
        "command": "python -m tests.security.table --write",
        "versions": {str(key): list(both) for key, both in sorted(versions.items())},
    }
    save(VERSION, header, answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="ask a live Kafka, and record its answers")
    if parser.parse_args().write:
        write()
    header, recorded = saved(VERSION)
    versions = {int(key): (low, high) for key, (low, high) in header["versions"].items()}
    found = {one[:3]: one for one in asyncio.run(of_ours(versions))}
    for one in recorded:
        our = found.get(one[:3])
        if our is None or our.by_versions != one.by_versions:
            print(*one[:3], sep=" | ")
            for who, answer in (("kafka", one), ("ours", our)):
                for numbers, tree in (answer.by_versions if answer else {}).items():
                    print("   ", who, numbers, json.dumps(tree))


if __name__ == "__main__":
    main()
