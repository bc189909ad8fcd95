"""Files that are looked at again and again: a change counts once they are whole."""

import asyncio
from pathlib import Path

import pytest

from harness.patience import within
from moldau.runtime import Runtime
from moldau.transport import reloading
from moldau.transport.reloading import FileWatch, signature


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "LOOK_S", 0.005)
    monkeypatch.setattr(reloading, "SETTLED_S", 0.005)


def test_a_signature_changes_when_a_file_is_written_replaced_or_missing(tmp_path: Path) -> None:
    file, seen = tmp_path / "a", []
    seen.append(signature([file]))
    file.write_text("a")
    seen.append(signature([file]))
    file.write_text("ab")
    seen.append(signature([file]))
    (tmp_path / "b").write_text("ab")
    (tmp_path / "b").replace(file)
    seen.append(signature([file]))
    assert len({tuple(one) for one in seen}) == 4


def test_a_fault_in_what_is_made_of_the_files_leaves_the_watch_at_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a"
    file.write_text("")

    async def scenario() -> None:
        happened, loop = asyncio.Event(), asyncio.get_running_loop()

        def changed() -> None:
            loop.call_soon_threadsafe(happened.set)
            raise RuntimeError("a fault")

        watch = FileWatch(lambda: [file], changed, Runtime())
        watch.start()
        for text in ("a", "ab"):
            file.write_text(text)
            await within(happened.wait())
            happened.clear()
        await watch.stop()

    asyncio.run(scenario())
    assert "internal error: files have changed" in caplog.text


def test_a_change_is_told_once_and_a_file_that_is_being_written_not_before_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("")
    told: list[str] = []

    async def scenario() -> None:
        happened = asyncio.Event()
        loop = asyncio.get_running_loop()

        def changed() -> None:
            told.append(file.read_text())
            loop.call_soon_threadsafe(happened.set)

        watch = FileWatch(lambda: [file], changed, Runtime())
        watch.start()
        with file.open("w") as writing:
            for _ in range(20):
                writing.write("x")
                writing.flush()
                await asyncio.sleep(0.002)
        await within(happened.wait())
        while told[-1] != "x" * 20:
            await asyncio.sleep(0.005)
        count = len(told)
        await asyncio.sleep(0.05)
        assert len(told) == count
        happened.clear()
        file.unlink()
        file.write_text("another")
        await within(happened.wait())
        await watch.stop()
        await watch.stop()

    asyncio.run(scenario())
    assert told[-1] == "another"
