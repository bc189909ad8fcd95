"""Random programs of two threads, and of two event loops, over all public calls of producer, consumer and admin: none
hangs or outlives its time-out, and no record is lost.

`MOLDAU_SEED=N` runs the program of that seed alone; `MOLDAU_TIER=long` runs 2,000 of each.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import moldau
from harness.tiers import seeds_or, sized
from moldau.client.producing.batch import Ack
from moldau.testing import Broker
from tests.client.programs.calls import CALLS
from tests.client.programs.two_callers import Loops, Program, Threads
from tests.client.test_programs import SETTINGS
from tests.replacing import Instead, replaced

SEEDS = seeds_or(0, sized(6, 20, 2_000))
WITHOUT_CALL = {"settings", "configs", "transactions"}
"""Public names that are no calls."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker({**SETTINGS, "group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker.address


def run(kind: type[Program], bootstrap: str, seed: int) -> None:
    program = kind(seed, bootstrap)
    try:
        program.run()
    except BaseException as failure:
        failure.add_note(f"MOLDAU_SEED={seed}\n" + "\n".join(program.trace))
        raise


@pytest.mark.parametrize("kind", [Threads, Loops])
def test_no_call_hangs_and_no_record_is_lost(bootstrap: str, kind: type[Program]) -> None:
    for seed in SEEDS:
        run(kind, bootstrap, seed)


def _acknowledge_unsent(post: Any, sender: Any, link: Any, taken: Any) -> None:
    if len(sender._links) and sender.counters.requests:
        return post(sender, link, taken)
    sender.counters.requests += 1
    for queue, batch in taken.values():
        queue.acknowledged(batch)
        sender._settle(queue.tp, batch, Ack(0, -1))
    return None


def _one_record_more(commit: Any, commits: Any, offsets: Any) -> Any:
    return commit(commits, {tp: at._replace(offset=at.offset + 1) for tp, at in offsets.items()})


BUGS: dict[str, tuple[str, Instead]] = {
    "a record that was not sent is acknowledged": (
        "was acknowledged, and is lost|is at",
        Instead("moldau.client.producing.sending:Sender._post", _acknowledge_unsent),
    ),
    "a commit covers one record more": (
        "was handed out",
        Instead("moldau.client.consuming.commits:Commits.commit", _one_record_more),
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("bug", BUGS)
def test_programs_of_two_callers_find(bootstrap: str, bug: str) -> None:
    found, instead = BUGS[bug]

    def run_all() -> None:
        for seed in range(40):
            run(Threads, bootstrap, seed)

    with replaced([instead]), pytest.raises(AssertionError, match=found):
        run_all()


def test_the_programs_have_every_public_call() -> None:
    for name, calls in CALLS.items():
        client = getattr(moldau, name.capitalize())
        public = {one for one in dir(client) if not one.startswith("_")} - WITHOUT_CALL
        assert public <= calls.keys()
    for part in ("configs", "transactions"):
        face = moldau.Admin.configs if part == "configs" else moldau.Admin.transactions
        assert face.func.__annotations__  # its calls are in the table by their whole names
        assert any(call.startswith(f"{part}.") for call in CALLS["admin"])
