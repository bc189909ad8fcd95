"""Producer ids come in blocks, and none comes twice."""

import asyncio
from pathlib import Path

from moldau.cluster import layout
from tests.cluster.opening import open_cluster


def test_producer_ids_come_in_blocks_and_a_restart_begins_the_next(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        found = []
        for count in (2, layout.PRODUCER_IDS_PER_BLOCK + 1, 1):
            cluster = await open_cluster(tmp_path)
            for _ in range(count):
                taken = cluster.producer_ids.next()
                found.append(taken if isinstance(taken, int) else await taken)
            await cluster.close()
        return found

    found = asyncio.run(scenario())
    assert found == [0, 1, *range(1000, 2001), 3000]


def test_producer_ids_taken_at_once_differ(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        cluster = await open_cluster(tmp_path)

        async def take() -> int:
            taken = cluster.producer_ids.next()
            return taken if isinstance(taken, int) else await taken

        found = await asyncio.gather(*(take() for _ in range(1500)))
        await cluster.close()
        return found

    assert len(set(asyncio.run(scenario()))) == 1500
