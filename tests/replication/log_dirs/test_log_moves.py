"""Moves of replicas between the log folders of one broker: what is written meanwhile, and everything that ends one."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.logs import append, config, open_log
from harness.patience import until
from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.errors import ErrorCode
from moldau.log import checkpoints, truncation
from moldau.log.folders.folder import LogFolder
from moldau.names import TopicPartition
from moldau.protocol.apis import PRODUCE
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, batches, encode_batch
from moldau.records.rows import iterate
from moldau.records.validation import check_own
from moldau.replication.log_dirs.log_copy import LogCopy
from moldau.replication.own_appends import append_marker, append_own
from moldau.replication.replica import Replica
from moldau.runtime import RealDisk
from tests.handlers.living import NOW_MS, Living, batch, living, outcomes, produce
from tests.handlers.living import run as run_in

TP = TopicPartition("t", 0)
Scenario = Callable[[Living], Awaitable[None]]


def run(scenario: Scenario, folder: Path, **settings: object) -> None:
    run_in(scenario, folder, log_dirs=f"{folder / 'a'},{folder / 'b'}", **settings)


def home(alive: Living, tp: TopicPartition = TP) -> str | None:
    folder = alive.broker.folders.folder_of(tp)
    return None if folder is None else folder.path.name


def move(alive: Living, where: str, tp: TopicPartition = TP) -> None:
    path = next(str(folder.path) for folder in alive.broker.folders.folders if folder.path.name == where)
    answer = alive.broker.replicas.moves.ask(tp, path, lambda: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert answer is ErrorCode.NONE


async def moved(alive: Living, where: str = "b", tp: TopicPartition = TP) -> None:
    move(alive, where, tp)
    await settled(alive)
    assert home(alive, tp) == where


async def settled(alive: Living) -> None:
    await until(lambda: not alive.broker.replicas.moves._moves)


def values(replica: Replica) -> list[bytes]:
    read: list[bytes] = []
    at = int(replica.log.log_start_offset)
    while data := replica.log.read_batches(at, 10_000):
        read += [bytes(one.value or b"") for one in iterate(data) if one.offset >= at]
        at = max(header.next_offset for _, header in batches(data))
    return read


def small(replica: Replica, size: int = 1000) -> Replica:
    """Give it small segments, smaller than a topic may have."""
    replica.configure(replace(replica.config, segment_bytes=size))
    return replica


def put(replica: Replica, *values: bytes, **options: int) -> Awaitable[object]:
    return append_own(replica, bytearray(batch(*values, **options)), NOW_MS)


def folder_of(alive: Living, name: str) -> LogFolder:
    return next(folder for folder in alive.broker.folders.folders if folder.path.name == name)


def test_a_folder_whose_disk_is_nearly_full_is_refused_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        monkeypatch.setattr(RealDisk, "space", lambda *_: (1 << 30, 1_000_000))
        answer = alive.broker.replicas.moves.ask(TP, str(tmp_path / "b"), lambda: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert answer is ErrorCode.KAFKA_STORAGE_ERROR and not alive.broker.replicas.moves._moves
        assert "its disk has only 1,000,000 bytes left" in caplog.text
        assert home(alive) == "a"

    run(scenario, tmp_path)


def test_nothing_is_lost_or_doubled_while_a_log_moves_to_and_fro_under_load(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        replica, wire, done = alive.replica("t"), await alive.dial(), False
        acknowledged: list[bytes] = []

        async def load() -> None:
            while not done:
                value = b"%d" % len(acknowledged) + b"." * 200
                reply = await wire.ask(PRODUCE, 9, produce(("t", 0, batch(value)), acks=-1))
                assert outcomes(reply) == [(0, 0, len(acknowledged))]
                acknowledged.append(value)
                await asyncio.sleep(0.001)

        loading = asyncio.ensure_future(load())
        for where in ("b", "a", "b"):
            small(replica, 20_000)
            before = len(acknowledged)
            await until(lambda before=before: len(acknowledged) > before + 30)
            await moved(alive, where)
        done = True
        await loading
        assert values(replica) == acknowledged and len(replica.log.segments) > 1
        assert replica.log.folder == tmp_path / "b" / "t-0"
        assert [path.name for path in sorted(tmp_path.glob("?/t-0*"))].count("t-0") == 1

    run(scenario, tmp_path)


def test_nothing_works_on_a_copy_when_its_partition_has_left_although_its_move_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        await put(alive.replica("t"), b"v")
        begun, may_end, steps = asyncio.Event(), asyncio.Event(), list[int]()
        step = LogCopy.step

        async def slow(copying: LogCopy, max_bytes: int) -> int:
            begun.set()
            await may_end.wait()
            steps.append(await step(copying, max_bytes))
            return steps[-1]

        monkeypatch.setattr(LogCopy, "step", slow)
        move(alive, "b")
        await begun.wait()
        move(alive, "a")
        await asyncio.sleep(0)
        dropping = asyncio.ensure_future(alive.broker.replicas.moves.drop([TP]))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not dropping.done()
        may_end.set()
        await dropping
        assert len(steps) == 1

    run(scenario, tmp_path)


def test_a_restart_finds_the_log_where_it_moved_to_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    async def first(alive: Living) -> None:
        await alive.make("t", 1)
        replica = small(alive.replica("t"))
        for number in range(20):
            await put(replica, b"v%d" % number + b"." * 100)
        replica.delete_records_before(7)
        await moved(alive)
        assert replica.log.log_start_offset == 7
        await put(replica, b"last")

    async def second(alive: Living) -> None:
        replica = alive.replica("t")
        assert home(alive) == "b" and (replica.log.log_start_offset, replica.log.log_end_offset) == (7, 21)
        assert values(replica)[-1] == b"last" and len(values(replica)) == 14
        assert replica.log.epochs.latest == replica.log.epochs.epoch_at(20)

    run(first, tmp_path)
    run(second, tmp_path)


def test_producers_go_on_after_a_move_and_what_they_send_again_is_known(tmp_path: Path) -> None:
    sent = [{"producer_id": 7, "producer_epoch": 0, "base_sequence": number} for number in range(3)]

    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        replica, wire = alive.replica("t"), await alive.dial()

        async def send(number: int) -> list[tuple[int, int, int]]:
            return outcomes(await wire.ask(PRODUCE, 9, produce(("t", 0, batch(b"v", **sent[number])))))

        assert [await send(0), await send(1)] == [[(0, 0, 0)], [(0, 0, 1)]]
        replica.delete_records_before(2)
        await moved(alive)
        assert [await send(1), await send(2)] == [[(0, 0, 1)], [(0, 0, 2)]]

    async def later(alive: Living) -> None:
        wire = await alive.dial()
        again = outcomes(await wire.ask(PRODUCE, 9, produce(("t", 0, batch(b"v", **sent[2])))))
        assert again == [(0, 0, 2)]

    run(scenario, tmp_path)
    run(later, tmp_path)


def test_open_and_aborted_transactions_move_along(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        replica = alive.replica("t")

        def write(producer: int, sequence: int) -> None:
            data = batch(
                b"v", producer_id=producer, producer_epoch=0, base_sequence=sequence, attributes=TRANSACTIONAL_BIT
            )

            replica.append(memoryview(bytearray(data)), check_own(memoryview(data), replica.rules, NOW_MS), NOW_MS)

        write(7, 0)
        await append_marker(replica, 7, 0, Marker(False, 0), 1, NOW_MS)
        write(8, 0)
        await moved(alive)
        assert replica.last_stable_offset == 2 and replica.log.committed.has_aborted
        assert [one.producer_id for one in replica.log.committed.aborted_between(0, 2)] == [7]
        await append_marker(replica, 8, 0, Marker(True, 0), 1, NOW_MS)
        assert replica.last_stable_offset == 4

    run(scenario, tmp_path)


def test_a_move_that_a_stop_has_cut_off_goes_on_at_the_next_start(tmp_path: Path) -> None:
    async def first(alive: Living) -> None:
        await alive.make("t", 1)
        replica = small(alive.replica("t"))
        for number in range(30):
            await put(replica, b"v%d" % number + b"." * 100)
        replica.log.cleaning = True
        move(alive, "b")
        await until(lambda: alive.broker.replicas.moves.copies()[str(tmp_path / "b")][TP].offset_lag == 0)
        replica.log.cleaning = False

    async def second(alive: Living) -> None:
        await settled(alive)
        assert home(alive) == "b" and len(values(alive.replica("t"))) == 30

    run(first, tmp_path, log_cleaner_enable="false")
    names = [path.name for path in (tmp_path / "b").iterdir() if path.name.endswith("-future")]
    assert len(names) == 1 and (tmp_path / "a" / "t-0").is_dir()
    run(second, tmp_path)
    assert not list(tmp_path.glob("?/*-future"))


def test_a_copy_that_differs_from_the_log_is_cut_where_they_differ(tmp_path: Path) -> None:
    async def first(alive: Living) -> None:
        await alive.make("t", 1)
        replica = alive.replica("t")
        for number in range(10):
            await put(replica, b"old %d" % number)
        replica.log.cleaning = True
        move(alive, "b")
        await until(lambda: alive.broker.replicas.moves.copies()[str(tmp_path / "b")][TP].offset_lag == 0)

    async def second(alive: Living) -> None:
        replica = alive.replica("t")
        await settled(alive)
        assert home(alive) == "b" and values(replica) == [b"old 0", b"old 1", b"old 2", b"new"]

    run(first, tmp_path, log_cleaner_enable="false")
    _rewrite(tmp_path)
    run(second, tmp_path)


def _rewrite(folder: Path) -> None:
    """The log loses its end, and gets another one in a later leader epoch."""
    log = open_log(folder / "a" / "t-0", config=config())
    truncation.truncate_to(log, 3, 0, NOW_MS)
    append(log, [Row(None, b"new", NOW_MS)], leader_epoch=5)
    log.close()
    checkpoints.write_offsets(RealDisk(), folder / "a" / checkpoints.HIGH_WATERMARKS, {TP: 4})


def test_to_ask_for_the_folder_it_is_in_ends_a_move_whenever_that_comes(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        replica = alive.replica("t")
        await put(replica, b"v")
        for turns in range(40):
            move(alive, "b")
            for _ in range(turns):
                await asyncio.sleep(0)
            move(alive, "a")
            await settled(alive)
            assert home(alive) == "a" and values(replica) == [b"v"]
            assert not list(tmp_path.glob("?/*-future"))

    run(scenario, tmp_path)


def test_a_topic_that_is_deleted_takes_its_copy_along(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        await put(alive.replica("t"), b"v")
        alive.replica("t").log.cleaning = True
        move(alive, "b")
        await until(lambda: alive.broker.replicas.moves.copies()[str(tmp_path / "b")][TP].size)
        await alive.broker.cluster.topics.delete([("t", None)])
        assert not alive.broker.replicas.moves.copies()
        assert not list(tmp_path.glob("?/*-future")) and not list(tmp_path.glob("?/t-0"))

    run(scenario, tmp_path, log_cleaner_enable="false")


@pytest.mark.parametrize("bad", ["a", "b"])
def test_a_disk_that_fails_ends_the_move_and_the_other_one_serves_on(tmp_path: Path, bad: str) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 2)
        replica = alive.replica("t")
        await put(replica, b"v")
        replica.log.cleaning = True
        move(alive, "b")
        await until(lambda: alive.broker.replicas.moves.copies()[str(tmp_path / "b")][TP].size)
        folder_of(alive, bad).fail(OSError(errno.EIO, "gone"))
        replica.log.cleaning = False
        await put(replica, b"w") if bad == "b" else None
        await settled(alive)
        assert home(alive) == (None if bad == "a" else "a")
        assert home(alive, TopicPartition("t", 1)) == (None if bad == "b" else "b")

    run(scenario, tmp_path, log_cleaner_enable="false")


def test_a_rate_holds_a_copy_up_and_a_higher_one_lets_it_go_on(tmp_path: Path) -> None:
    name = "replica.alter.log.dirs.io.max.bytes.per.second"

    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        replica = alive.replica("t")
        for _ in range(40):
            await put(replica, b"." * 100)
        await alive.broker.cluster.configs.alter_broker("1", [Alteration(name, OpType.SET, "200")])
        move(alive, "b")
        moves, where = alive.broker.replicas.moves, str(tmp_path / "b")
        await until(lambda: moves.copies()[where][TP].size)
        assert 0 < moves.copies()[where][TP].offset_lag < 40
        await alive.broker.cluster.configs.alter_broker("1", [Alteration(name, OpType.SET, "100000000")])
        await settled(alive)
        assert home(alive) == "b" and len(values(replica)) == 40

    run(scenario, tmp_path)


def test_a_compacted_log_is_compacted_on(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01)
        replica = small(alive.replica("t"))

        async def write(count: int) -> None:
            for number in range(count):
                await append_own(replica, encode_batch([Row(b"k%d" % (number % 3), b"." * 200, NOW_MS)]), NOW_MS)

        await write(30)
        while await alive.broker.cleaner.clean_dirtiest():
            pass
        cleaned = alive.broker.cleaner.offsets.of(replica.log)
        await moved(alive)
        assert cleaned and alive.broker.cleaner.offsets.of(replica.log) == cleaned
        assert checkpoints.read_offsets(RealDisk(), tmp_path / "b" / checkpoints.CLEANER_OFFSETS) == {TP: cleaned}
        small(replica)
        await write(30)
        while await alive.broker.cleaner.clean_dirtiest():
            pass
        assert len(values(replica)) < 20 and replica.log.log_end_offset == 60

    run(scenario, tmp_path, log_cleaner_backoff_ms=10**9)


def test_what_was_compacted_after_it_was_copied_is_compacted_again(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 1, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01)
        replica, cleaner, moves = small(alive.replica("t")), alive.broker.cleaner, alive.broker.replicas.moves

        async def write_and_compact() -> int | None:
            for number in range(20):
                await append_own(replica, encode_batch([Row(b"k%d" % (number % 3), b"." * 200, NOW_MS)]), NOW_MS)
            while await cleaner.clean_dirtiest():
                pass
            return cleaner.offsets.of(replica.log)

        before = await write_and_compact()
        async with moves._following:  # holds up the swap
            move(alive, "b")
            await until(lambda: moves._moves[TP].copying and not moves._moves[TP].progress().offset_lag)
            after = await write_and_compact()
        await settled(alive)
        assert home(alive) == "b" and before and after and before < after
        assert cleaner.offsets.of(replica.log) == before

    run(scenario, tmp_path, log_cleaner_backoff_ms=10**9)


def test_a_broker_that_stops_in_the_middle_of_everything_loses_nothing(tmp_path: Path) -> None:
    async def write(count: int) -> None:
        async with living(tmp_path, log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}") as alive:
            if "t" not in alive.broker.cluster.image.topics:
                await alive.make("t", 1)
            replica = small(alive.replica("t"))
            assert len(values(replica)) == count * 10
            for _ in range(10):
                await put(replica, b"." * 100)
            move(alive, "b" if home(alive) == "a" else "a")
            for _ in range(count * 3):
                await asyncio.sleep(0)

    for count in range(12):
        asyncio.run(write(count))
