"""Which offsets the cleaner keeps as logs go, with very many logs there."""

import asyncio
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from moldau.log import checkpoints
from moldau.log.compaction.cleaned_offsets import CleanedOffsets
from moldau.names import TopicPartition
from moldau.runtime import RealDisk, Runtime
from moldau.turns import ELEMENTS

OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)


def log(folder: Path, name: str, topic_id: uuid.UUID = OLD) -> Any:
    tp = TopicPartition(name, 0)
    return SimpleNamespace(folder=folder / str(tp), tp=tp, topic_id=topic_id)


def kept(folder: Path) -> list[str]:
    offsets = checkpoints.read_offsets(RealDisk(), folder / checkpoints.CLEANER_OFFSETS)
    return sorted(tp.topic for tp in offsets)


def test_offsets_of_deleted_and_of_recreated_topics_go_and_those_of_an_offline_folder_stay(tmp_path: Path) -> None:
    online, offline = tmp_path / "online", tmp_path / "offline"
    online.mkdir()
    offline.mkdir()

    async def scene() -> None:
        offsets = CleanedOffsets(Runtime())
        for one in (log(online, "stays"), log(online, "gone"), log(online, "anew"), log(offline, "away")):
            await offsets.put(one, 7)
        there = [log(online, "stays"), log(online, "anew", NEW)]
        await offsets.forget_others(there)
        assert [offsets.of(one) for one in there] == [7, None]
        assert offsets.of(log(offline, "away")) == 7

    asyncio.run(scene())
    assert kept(online) == ["stays"]
    assert kept(offline) == ["away"]


def test_others_have_a_turn_while_very_many_logs_are_looked_at(tmp_path: Path) -> None:
    turns = 0

    async def scene() -> None:
        nonlocal turns
        offsets = CleanedOffsets(Runtime())
        await offsets.put(log(tmp_path, "t0"), 7)
        looking = asyncio.ensure_future(offsets.forget_others([log(tmp_path, f"t{n}") for n in range(5 * ELEMENTS)]))
        while not looking.done():
            turns += 1
            await asyncio.sleep(0)
        assert offsets.of(log(tmp_path, "t0")) == 7

    asyncio.run(scene())
    assert turns > 5
