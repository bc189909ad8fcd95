"""`moldau` and `moldau.aio` have the same names, methods, arguments and settings; what differs is listed here."""

import inspect
from typing import Any

import pytest

import moldau
from moldau import aio
from moldau.client.administration.configs import AsyncConfigs, Configs
from moldau.client.administration.transactions import AsyncTransactions, Transactions
from moldau.client.consuming.partition_log import AsyncPartitionLog, PartitionLog
from moldau.client.producing.transaction import AsyncTransaction, Transaction

FACES: dict[str, tuple[type, type]] = {
    "Producer": (moldau.Producer, aio.Producer),
    "Consumer": (moldau.Consumer, aio.Consumer),
    "Admin": (moldau.Admin, aio.Admin),
    "Admin.configs": (Configs, AsyncConfigs),
    "Admin.transactions": (Transactions, AsyncTransactions),
    "Consumer.log": (PartitionLog, AsyncPartitionLog),
    "Producer.transaction": (Transaction, AsyncTransaction),
    "Consumer.create_message_streams": (moldau.MessageStream, aio.MessageStream),
}
NAMES_OF_MOLDAU_ALONE = {
    "__version__",
    "admin",  # values
    "aio",
    "serializers",  # functions that do not wait
}
ONLY_ASYNC: dict[str, set[str]] = {
    # `async with` binds a client to the running loop; without it, `await client.start()` does
    "Producer": {"start"},
    "Consumer": {"start"},
    "Admin": {"start"},
    # `await log[5]`: an index is a coroutine there, which `await log.read(start, stop)` and others say more plainly
    "Consumer.log": {"at", "piece", "read"},
}
FOR_THE_SYNC_FACE: dict[str, set[str]] = {
    "Producer": {"check_callback", "closed", "full", "refuse", "shown", "wake"},
    "Consumer": {
        "acknowledge",
        "call_back",
        "commit_processed",
        "commits_automatically",
        "deserialized",
        "hand_out_to",
        "hold_back",
        "may_take",
        "ready",
        "refuse",
        "run_processing",
        "shown",
        "sign_of_life",
        "stream_of",
        "subscribe_to",
        "take",
        "take_table",
        "wake",
        "walk",
    },
    "Admin": {"shown"},
}
"""What the synchronous face calls in the thread of its caller; it is not meant for applications."""


def public(face: type) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_")}


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def test_both_modules_export_the_same_names() -> None:
    assert set(moldau.__all__) - set(aio.__all__) == NAMES_OF_MOLDAU_ALONE
    assert set(aio.__all__) <= set(moldau.__all__)
    for name in aio.__all__:
        assert getattr(aio, name) is getattr(moldau, name) or name in {*FACES, "MessageStream", "read_table"}


@pytest.mark.parametrize("name", FACES)
def test_both_faces_have_the_same_methods_and_arguments(name: str) -> None:
    sync, asynchronous = FACES[name]
    settings = {"settings"}  # an attribute that an instance of the asyncio face has
    assert public(sync) - public(asynchronous) - settings == set()
    extra = ONLY_ASYNC.get(name, set()) | FOR_THE_SYNC_FACE.get(name, set())
    assert public(asynchronous) - public(sync) - settings == extra
    for method in public(sync) & public(asynchronous):
        ours, theirs = getattr(sync, method), getattr(asynchronous, method)
        assert inspect.getdoc(ours) and inspect.getdoc(theirs), f"{name}.{method} has no docstring"
        if inspect.isfunction(ours):
            assert parameters(ours) == parameters(theirs), f"{name}.{method}"


@pytest.mark.parametrize("name", ["Producer", "Consumer", "Admin"])
def test_both_faces_have_the_same_settings(name: str) -> None:
    sync, asynchronous = FACES[name]
    assert parameters(sync) == parameters(asynchronous)
    assert sync.__init__.__doc__ == asynchronous.__init__.__doc__  # type: ignore[misc]
    assert "Kafka's names" in (sync.__init__.__doc__ or "")  # type: ignore[misc]


@pytest.mark.parametrize("name", FACES)
def test_signatures_name_what_callers_know(name: str) -> None:
    for face in FACES[name]:
        for method in public(face):
            function = inspect.getattr_static(face, method)
            assert not callable(function) or "~" not in str(inspect.signature(function)), "a type variable"
