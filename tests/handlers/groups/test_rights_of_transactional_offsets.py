"""TxnOffsetCommit for clients that lack rights, by raw requests: the answers are those of Apache Kafka 4.3.1."""

from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.protocol.apis import TXN_OFFSET_COMMIT
from moldau.requests.access import READ_GROUP, READ_TOPIC, WRITE_TRANSACTIONAL_ID
from tests.handlers.groups.test_transactional_offsets import ABSENT, BY_ID, NONE, commit, fetched, ready
from tests.handlers.guarded import Guard, run_guarded
from tests.handlers.judged import some_versions
from tests.handlers.living import Living

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
WRITER, MEMBER = (WRITE_TRANSACTIONAL_ID, "t"), (READ_GROUP, "g")


@pytest.mark.parametrize("version", some_versions(TXN_OFFSET_COMMIT))
def test_a_producer_needs_the_right_on_its_id_its_group_and_each_topic(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living, guard: Guard) -> None:
        one = await ready(alive)
        await alive.make("b")
        if version < 5:
            assert await one.add_offsets("g", version=min(version, 3)) is NONE
        offsets = {("b", 0): 4, ("b", 9): 4, ("a", 0): 5, ("a", 9): 5, ("gone", 0): 6}
        everywhere = [("b", 0), ("b", 9), ("a", 0), ("a", 9), ("gone", 0)]
        for denied, error in (
            ([WRITER, MEMBER, (READ_TOPIC, "*")], ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            ([MEMBER, (READ_TOPIC, "*")], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ):
            with guard.without(*denied) as denying:
                assert await commit(one, version, offsets) == [(*place, error) for place in everywhere]
            assert denying.logged == [denied[0]]
        topics = [(READ_TOPIC, "b"), (READ_TOPIC, "a"), (READ_TOPIC, "gone")][: 2 if version >= BY_ID else 3]
        with guard.without((READ_TOPIC, "a"), (READ_TOPIC, "gone")) as denying:
            assert await commit(one, version, offsets) == [
                *[("b", 9, ABSENT), ("b", 0, NONE)],
                *[("a", 0, DENIED), ("a", 9, DENIED)],
                ("gone", 0, ErrorCode.UNKNOWN_TOPIC_ID if version >= BY_ID else DENIED),
            ]
        assert denying.asked == [WRITER, MEMBER, *topics], "once for each topic"
        assert denying.logged == topics[1:]
        assert await fetched(one, 0, stable=False) == [(0, -1, NONE)]

    run_guarded(scenario, tmp_path)
