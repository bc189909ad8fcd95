"""What every metadata store promises: one kit for the SQLite file, the model ZooKeeper, and the real ones.

A scenario is given a function that opens sessions of one store, which has nothing in it; they are closed behind it.
What another session has done may be seen a little later, so a scenario waits for that with `eventually`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

import pytest

from moldau.metadata_store.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataStore,
    Node,
    NodeExists,
    NodeOperation,
    NoNode,
    NotEmpty,
    OutcomeUnknown,
    Reading,
    SessionOver,
    Set,
    StoreConflict,
    Written,
    children_of,
    nodes_at,
)

Open: TypeAlias = Callable[[], Awaitable[MetadataStore]]
Scenario: TypeAlias = Callable[[Open], Awaitable[None]]
Play: TypeAlias = Callable[[Scenario], None]
T = TypeVar("T")


def plain_node_at(path: str) -> Reading[Node | None]:
    """The node, without the number of the change that created it."""
    return (yield from plain_nodes_at([path]))[0]


def plain_nodes_at(paths: Sequence[str]) -> Reading[list[Node | None]]:
    nodes = yield from nodes_at(paths)
    return [node and node._replace(czxid=0) for node in nodes]


async def eventually(store: MetadataStore, reading: Callable[[], Reading[T]], expected: T) -> None:
    while await store.read(reading()) != expected:
        await asyncio.sleep(0.01)


class StoreKit:
    """A subclass has a fixture `play` that runs a scenario."""

    def test_a_new_store_has_a_root_and_nothing_else(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            assert await store.read(plain_node_at("/")) == Node(b"", 0)
            assert await store.read(children_of("/")) == []
            assert await store.read(plain_node_at("/a")) is None
            assert await store.read(children_of("/a")) == []

        play(scenario)

    def test_a_node_has_the_data_it_was_created_with_at_version_0(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            await store.multi([Create("/a", b"1"), Create("/a/b", b"2")])
            assert await store.read(plain_node_at("/a")) == Node(b"1", 0)
            assert await store.read(plain_nodes_at(["/a/b", "/a/c", "/a"])) == [Node(b"2", 0), None, Node(b"1", 0)]
            assert await store.read(plain_nodes_at([])) == []

        play(scenario)

    def test_every_set_counts_the_version_up(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            await store.multi([Create("/a"), Set("/a", b"1"), Set("/a", b"2", 1)])
            assert await store.read(plain_node_at("/a")) == Node(b"2", 2)

        play(scenario)

    def test_children_are_direct_ones_sorted_by_name(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            await store.multi([Create(path) for path in ("/a", "/a/c", "/a/b", "/a/b/d", "/ab")])
            assert await store.read(children_of("/a")) == ["b", "c"]
            assert await store.read(children_of("/")) == ["a", "ab"]

        play(scenario)

    def test_several_hundred_nodes_are_written_and_read_in_one_step_each(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            names = [f"{number:03}" for number in range(400)]
            await store.multi([Create("/a"), *(Create(f"/a/{name}", name.encode()) for name in names)])
            assert await store.read(children_of("/a")) == names
            nodes = await store.read(plain_nodes_at([f"/a/{name}" for name in names]))
            assert nodes == [Node(name.encode(), 0) for name in names]

        play(scenario)

    @pytest.mark.parametrize(
        ("operation", "refusal", "at"),
        [
            (Create("/a"), NodeExists, "/a"),
            (Create("/x/y"), NoNode, "/x"),
            (Create("/e/y"), NoNode, "/e"),
            (Set("/x", b""), NoNode, "/x"),
            (Set("/a", b"", 5), BadVersion, "/a"),
            (Delete("/x"), NoNode, "/x"),
            (Delete("/a"), NotEmpty, "/a"),
            (Delete("/a/b", 1), BadVersion, "/a/b"),
            (Check("/x"), NoNode, "/x"),
            (Check("/a", 3), BadVersion, "/a"),
        ],
    )
    def test_a_refusal_names_the_node_and_changes_nothing(
        self, play: Play, operation: NodeOperation, refusal: type[StoreConflict], at: str
    ) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            await store.multi([Create("/a"), Create("/a/b"), Create("/e", ephemeral=True)])
            with pytest.raises(refusal) as refused:
                await store.multi([Create("/before"), Set("/a", b"changed"), operation, Create("/after")])
            assert refused.value.path == at
            assert await store.read(plain_node_at("/before")) is None
            assert await store.read(plain_node_at("/a")) == Node(b"", 0)

        play(scenario)

    def test_each_operation_sees_those_before_it(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            again = [Create("/a", b"again"), Check("/a", 0)]
            await store.multi([Create("/a"), Create("/a/b"), Delete("/a/b"), Delete("/a", 0), *again])
            assert await store.read(plain_node_at("/a")) == Node(b"again", 0)

        play(scenario)

    def test_the_result_of_a_change_is_what_it_made_of_each_node(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            assert await store.multi([]) == []
            [first] = await store.multi([Create("/a", b"1")])
            assert first is not None
            assert first.version == 0
            results = await store.multi(
                [Check("/a", 0), Set("/a", b"2"), Create("/b"), Create("/b/c", ephemeral=True), Set("/a", b"3"),
                 Create("/d"), Delete("/d")]
            )  # fmt: skip
            assert results[2] is not None
            second = results[2].czxid
            assert second > first.czxid > 0
            made, kept = Written(0, second), first.czxid
            assert results == [None, Written(1, kept), made, made, Written(2, kept), made, None]
            nodes = await store.read(nodes_at(["/a", "/b", "/b/c"]))
            own = store.session_id
            assert nodes == [Node(b"3", 2, 0, kept), Node(b"", 0, 0, second), Node(b"", 0, own, second)]

        play(scenario)

    def test_a_later_change_has_a_higher_number_whatever_session_makes_it(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            sessions = [await open_session() for _ in range(2)]
            numbers = []
            for count in range(6):
                [made, _] = await sessions[count % 2].multi([Create("/a"), Delete("/a")])
                numbers.append(made.czxid if made else 0)
                with pytest.raises(NoNode):
                    await sessions[count % 2].multi([Create("/b"), Check("/a")])
            assert numbers == sorted(set(numbers))

        play(scenario)

    def test_a_reading_may_ask_one_question_after_another(self, play: Play) -> None:
        def below(path: str) -> Reading[list[Node | None]]:
            names = yield from children_of(path)
            return (yield from plain_nodes_at([f"{path}/{name}" for name in names]))

        async def scenario(open_session: Open) -> None:
            store = await open_session()
            await store.multi([Create("/a"), Create("/a/b", b"1"), Create("/a/c", b"2")])
            assert await store.read(below("/a")) == [Node(b"1", 0), Node(b"2", 0)]

        play(scenario)

    def test_what_a_reading_raises_is_raised(self, play: Play) -> None:
        def wrong() -> Reading[None]:
            yield from plain_node_at("/")
            raise LookupError("wrong")

        async def scenario(open_session: Open) -> None:
            store = await open_session()
            with pytest.raises(LookupError, match="wrong"):
                await store.read(wrong())
            assert await store.read(children_of("/")) == []

        play(scenario)

    @pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a\0b"])
    def test_what_is_no_path_is_a_mistake_of_the_caller(self, play: Play, path: str) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            with pytest.raises(ValueError, match="not the path"):
                await store.read(plain_node_at(path))
            with pytest.raises(ValueError, match="not the path"):
                await store.read(children_of(path))
            with pytest.raises(ValueError, match="not the path"):
                await store.multi([Create(path)])
            with pytest.raises(ValueError, match="not the path"):
                await store.watch(path, lambda: None)

        play(scenario)

    # ------------------------------------------------------------------------------------------------ sessions

    def test_the_nodes_of_a_closed_session_stay_except_the_ephemeral_ones(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            first, second = await open_session(), await open_session()
            await first.multi([Create("/a", b"1"), Create("/e", b"2", ephemeral=True), Set("/a", b"3")])
            assert await first.read(plain_node_at("/e")) == Node(b"2", 0, first.session_id)
            await first.close()
            await eventually(second, lambda: plain_nodes_at(["/a", "/e"]), [Node(b"3", 1), None])

        play(scenario)

    def test_the_owner_of_an_ephemeral_node_is_its_session(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            first, second = await open_session(), await open_session()
            assert 0 < first.session_id != second.session_id > 0
            await first.multi([Create("/1", ephemeral=True)])
            await second.multi([Create("/2", ephemeral=True), Set("/1", b"of another")])
            await eventually(
                first,
                lambda: plain_nodes_at(["/1", "/2"]),
                [Node(b"of another", 1, first.session_id), Node(b"", 0, second.session_id)],
            )
            await second.close()
            await eventually(first, lambda: children_of("/"), ["1"])
            await first.multi([Delete("/1", 1)])
            assert await first.read(children_of("/")) == []

        play(scenario)

    def test_a_session_that_was_closed_answers_nothing(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            store = await open_session()
            await store.close()
            await store.close()
            with pytest.raises(SessionOver):
                await store.read(plain_node_at("/"))
            with pytest.raises(SessionOver):
                await store.multi([Create("/a")])
            with pytest.raises(SessionOver):
                await store.watch("/", lambda: None)
            other = await open_session()
            assert await other.read(plain_node_at("/a")) is None

        play(scenario)

    def test_of_two_sessions_that_change_a_node_at_once_one_is_refused(self, play: Play) -> None:
        async def count(store: MetadataStore, times: int) -> None:
            while times:
                node = await store.read(plain_node_at("/count"))
                if node is None:  # not here yet
                    continue
                try:
                    await store.multi([Set("/count", str(int(node.data) + 1).encode(), node.version)])
                except BadVersion:
                    continue
                times -= 1

        async def scenario(open_session: Open) -> None:
            sessions = [await open_session() for _ in range(3)]
            await sessions[0].multi([Create("/count", b"0")])
            await asyncio.gather(*(count(store, 20) for store in sessions))
            await eventually(sessions[0], lambda: plain_node_at("/count"), Node(b"60", 60))

        play(scenario)

    # ------------------------------------------------------------------------------------------------- watches

    @pytest.mark.parametrize(
        "change",
        [
            [Create("/w/new")],
            [Set("/w", b"1")],
            [Delete("/w/old")],
            [Delete("/w/old"), Delete("/w")],
            [Create("/w/e", ephemeral=True)],
        ],
    )
    def test_a_watcher_looks_after_a_change_of_the_node_or_its_children(
        self, play: Play, change: list[NodeOperation]
    ) -> None:
        async def scenario(open_session: Open) -> None:
            first, second = await open_session(), await open_session()
            await second.multi([Create("/w"), Create("/w/old")])
            await eventually(first, lambda: children_of("/w"), ["old"])
            looked = asyncio.Event()
            await first.watch("/w", looked.set)
            looked.clear()
            await second.multi(change)
            await looked.wait()
            at = [operation.path for operation in change]
            after = await second.read(plain_nodes_at(at))
            assert await first.read(plain_nodes_at(at)) == after, "who is told sees it"

        play(scenario)

    def test_who_watches_no_more_is_not_called(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            first, second = await open_session(), await open_session()
            calls: list[str] = []
            looked = asyncio.Event()
            await second.multi([Create("/w"), Create("/other")])
            await first.watch("/w", lambda: calls.append("/w"))
            await first.watch("/other", looked.set)
            first.unwatch("/w")
            first.unwatch("/never")
            calls.clear()  # the node's creation may have been told
            looked.clear()
            await second.multi([Set("/w", b"1"), Set("/other", b"1")])
            await looked.wait()
            assert calls == []
            await first.watch("/w", lambda: calls.append("again"))
            await second.multi([Set("/w", b"2")])
            while not calls:
                await asyncio.sleep(0.01)
            assert set(calls) == {"again"}

        play(scenario)

    def test_after_a_sync_a_session_sees_what_another_one_has_changed_before(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            mine, other = await open_session(), await open_session()
            await mine.multi([Create("/a")])
            for number in range(10):
                await mine.multi([Set("/a", b"%d" % number)])
                await other.sync()
                assert await other.read(plain_node_at("/a")) == Node(b"%d" % number, number + 1)
            await other.close()
            with pytest.raises(SessionOver):
                await other.sync()

        play(scenario)

    def test_a_watcher_looks_as_often_as_something_changes(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            first, second = await open_session(), await open_session()
            looked = asyncio.Event()
            await first.watch("/w", looked.set)
            for number in range(5):
                looked.clear()
                await second.multi([Set("/w", b"") if number else Create("/w")])
                await looked.wait()
                await eventually(first, lambda: plain_node_at("/w"), Node(b"", number))

        play(scenario)

    def test_a_watcher_looks_when_the_session_of_an_ephemeral_node_ends(self, play: Play) -> None:
        async def scenario(open_session: Open) -> None:
            first, second = await open_session(), await open_session()
            await second.multi([Create("/w"), Create("/w/e", ephemeral=True)])
            await eventually(first, lambda: children_of("/w"), ["e"])
            looked, looked_above = asyncio.Event(), asyncio.Event()
            await first.watch("/w/e", looked.set)
            await first.watch("/w", looked_above.set)
            await second.close()
            await looked.wait()
            await looked_above.wait()
            assert await first.read(children_of("/w")) == []

        play(scenario)


async def count_up(store: MetadataStore, path: str, times: int) -> tuple[int, int]:
    """Add 1 to a number again and again, whatever is lost meanwhile: the number of answers and of unknown outcomes."""
    answered = unknown = 0
    while answered + unknown < times:
        node = await store.read(plain_node_at(path))
        assert node is not None
        try:
            await store.multi([Set(path, str(int(node.data) + 1).encode(), node.version)])
            answered += 1
        except BadVersion:  # read from a server that is behind
            await asyncio.sleep(0.001)
        except OutcomeUnknown:
            unknown += 1
    return answered, unknown
