"""A consumer of ours that begins where its group is waits for the transaction that is about to say where that is."""

import asyncio
from pathlib import Path

import pytest

from moldau.client.consuming.consumer import AsyncConsumer
from moldau.errors import ErrorCode
from moldau.names import OffsetAndMetadata, TopicPartition
from tests.handlers.groups.test_transactional_offsets import commit, ready
from tests.handlers.living import Living
from tests.handlers.transacting import PAUSE_S, run

NONE = ErrorCode.NONE


@pytest.mark.parametrize("commits", [True, False])
def test_a_consumer_waits_until_it_is_decided_where_its_group_is(commits: bool, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one, a = await ready(alive), TopicPartition("a", 0)
        assert await commit(one, 5, {("a", 0): 1}) == [("a", 0, NONE)]
        assert await one.end(True, version=5) is NONE
        assert await commit(one, 5, {("a", 0): 2}) == [("a", 0, NONE)]
        async with AsyncConsumer(f"127.0.0.1:{alive.broker.port}", group_id="g", enable_auto_commit=False) as consumer:
            asked = asyncio.ensure_future(consumer.committed([a, TopicPartition("a", 1)]))
            await asyncio.sleep(5 * PAUSE_S)
            assert not asked.done()
            assert await one.end(commits, version=5) is NONE
            assert await asked == {a: OffsetAndMetadata(2 if commits else 1, "")}

    run(scenario, tmp_path)
