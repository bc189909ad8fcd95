"""Every call of an admin client, given what is not what it takes, or answered with what it did not ask for: one
sentence, as one of Moldau's errors."""

import asyncio
import contextlib
import inspect
from typing import Any

import pytest

from moldau.errors import ConfigError, MoldauError
from tests.client.administration.answering import called, empty, method, of_others, valid
from tests.client.programs.calls import ADMIN

VALUES: dict[str, Any] = {"None": None, "0": 0, "zz": "zz", "list": ["t"], "dict": {"t": "zz"}, "object": object()}
STRANGE: list[Any] = [
    *(-1, 2**70, 1.5, float("nan"), True, "", "\ud800", "a b/c", b"zz", (), [], {}, [object()], [[]], {"t": {}}),
    *({object(): 1}, ("t", 0), [("t", 0)], [("t", -1)], {("t", 0): "x"}, {("t", 0): object()}, {("t", 0): 2**70}),
    *([None], ["t", None], [3], {"t": None}, {"t": object()}, {3: "t"}, type, [b"t"], {"t": ["a", 3, None, b"x"]}),
]
TAKEN: dict[str, str] = {
    "topic": "zz",
    "group_id": "zz",
    "name": "zz",
    "transactional_id": "zz",
    "topics": "list dict",
    "describe_topics.topics": "zz list dict",
    "describe_log_dirs.topics": "None list dict",
    "create_topic.partitions": "0",
    "elect_leaders.partitions": "None",
    "list_reassignments.partitions": "None",
    "replication_factor": "0",
    "configs": "None dict",
    "assignment": "None",
    "count": "0",
    "alter_topic_configs.changes": "dict",
    "configs.alter.changes": "dict",
    "states": "list dict",
    "types": "list dict",
    "broker_ids": "None",
    "group_ids": "list dict",
    "brokers": "None",
    "broker_id": "None 0",
    "unregister_broker.broker_id": "0",
    "match": "None dict",
    "owner": "None zz",
    "owners": "None list dict",
    "renewers": "list dict",
    "max_lifetime_ms": "None 0",
    "period_ms": "None 0",
    "expire_delegation_token.period_ms": "0",
    "users": "None list dict",
    "lasting_ms": "None 0",
    "pattern": "None zz",
    "older_than_ms": "0",
    "producer_id": "0",
    "producer_epoch": "0",
    "coordinator_epoch": "0",
}
"""The `VALUES` that an argument takes, by its name, or by those of its call and it; others take none of them."""
WITH_ARGUMENTS = [call for call in ADMIN if call != "close" and len(inspect.signature(method(call)).parameters) > 1]


@pytest.mark.parametrize("call", WITH_ARGUMENTS)
def test_what_an_argument_does_not_take_is_refused_in_a_sentence(call: str) -> None:
    async def give() -> None:
        for name in [*inspect.signature(method(call)).parameters][1:]:
            taken = TAKEN.get(f"{call}.{name}", TAKEN.get(name, "")).split()
            for shown, value in VALUES.items():
                refused = await _refusal(call, name, value)
                assert isinstance(refused, ConfigError) == (shown not in taken), (name, shown, refused)
                if refused is not None and shown not in taken:
                    assert len(str(refused)) < 400 and "\n" not in str(refused), refused

    asyncio.run(give())


@pytest.mark.parametrize("call", WITH_ARGUMENTS)
def test_nothing_strange_that_is_given_is_a_traceback(call: str) -> None:
    async def give() -> None:
        for name in [*inspect.signature(method(call)).parameters][1:]:
            for value in STRANGE:
                await _refusal(call, name, value)

    asyncio.run(give())


async def _refusal(call: str, name: str, value: Any) -> MoldauError | None:
    """The error of a call with this value as one of its arguments; any error but Moldau's fails the test."""
    try:
        await called(call, {**valid(call), name: value}, empty)
    except MoldauError as refused:
        return refused
    except Exception as fault:
        raise AssertionError(f"{call}({name}={value!r})") from fault
    return None


@pytest.mark.parametrize("call", [call for call in ADMIN if call != "close"])
@pytest.mark.parametrize("reply", [empty, of_others])
def test_a_reply_without_what_was_asked_for_is_an_error_of_moldau_or_an_empty_answer(call: str, reply: Any) -> None:
    with contextlib.suppress(MoldauError):
        asyncio.run(called(call, valid(call), reply))


@pytest.mark.parametrize("call", ["create_acls", "delete_acls", "alter_reassignments", "elect_leaders", "offsets"])
def test_a_reply_that_leaves_something_out_says_so(call: str) -> None:
    with pytest.raises(MoldauError, match=r"the broker's reply (leaves out|has 0 results)"):
        asyncio.run(called(call, valid(call), empty))


SENTENCES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a text for a list": (
        "delete_topics",
        {"topics": "xyz"},
        "delete_topics takes topics as a list of texts, not 'xyz'; for one, give ['xyz']",
    ),
    "a list for a text": ("watermarks", {"topic": ["t"]}, "watermarks takes topic as text, not ['t']"),
    "a number for brokers": (
        "alter_reassignments",
        {"moves": {("t", 0): 0}},
        (
            "alter_reassignments takes moves as a mapping from TopicPartitions to lists of whole numbers or None, and 0"
            " in it is not a list of whole numbers or None"
        ),
    ),
    "nothing for a filter": ("describe_acls", {"which": None}, "describe_acls takes which as an AclFilter, not None"),
    "a text for a number": (
        "create_topic",
        {"topic": "t", "partitions": "3"},
        "create_topic takes partitions as a whole number, not '3'",
    ),
    "a text for an offset": (
        "delete_records",
        {"before": {("t", 0): "all"}},
        (
            "delete_records takes before as a mapping from TopicPartitions to whole numbers, and 'all' in it is not a"
            " whole number"
        ),
    ),
    "a secret of another type": (
        "renew_delegation_token",
        {"hmac": "c2VjcmV0"},
        "renew_delegation_token takes hmac as bytes, not a value of type str",
    ),
    "a position without a name": (
        "offsets",
        {"wanted": {("t", 0): "middle"}},
        "'middle' is not a time, nor one of earliest, latest, max_timestamp",
    ),
    "what is no position": (
        "offsets",
        {"wanted": {("t", 0): []}},
        (
            "offsets takes wanted as a mapping from TopicPartitions to whole numbers, datetimes, earliest, latest or"
            " max_timestamp, and [] in it is not a whole number, a datetime, earliest, latest or max_timestamp"
        ),
    ),
    "one partition for several": (
        "elect_leaders",
        {"partitions": ("t", 0)},
        "elect_leaders takes partitions as a list of TopicPartitions or None, not ('t', 0)",
    ),
    "a setting of bytes": (
        "configs.alter",
        {"kind": "topic", "name": "t", "changes": {"retention.ms": b"7"}},
        "retention.ms takes text, a number, True or False, a list of them, or None to reset it, not bytes",
    ),
    "an unknown call's argument": (
        "transactions.producers",
        {"partitions": [("t", 0)], "broker_id": "1"},
        "transactions.producers takes broker_id as a whole number or None, not '1'",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_the_sentence_says_what_the_call_takes_and_what_it_was_given(case: str) -> None:
    call, arguments, sentence = SENTENCES[case]
    with pytest.raises(ConfigError) as refused:
        asyncio.run(called(call, arguments, empty))
    assert str(refused.value) == sentence


def test_a_password_that_is_not_text_is_not_shown() -> None:
    from moldau.admin import ScramUpsertion

    wrong = ScramUpsertion("ann", b"secret")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a value of type bytes in it is not text") as refused:
        asyncio.run(called("alter_user_scram_credentials", {"changes": [wrong]}, empty))
    assert "secret" not in str(refused.value)


def test_a_generator_is_read_once_and_an_unknown_argument_stays_pythons_error() -> None:
    with pytest.raises(MoldauError, match="leaves out topic t, u"):
        asyncio.run(called("delete_topics", {"topics": (name for name in "tu")}, empty))
    with pytest.raises(TypeError, match="unexpected keyword argument 'names'"):
        asyncio.run(called("delete_topics", {"names": ["t"]}, empty))
