"""A recording says what was answered, what it is of, and which steps of the script it does not have."""

import json
import uuid
from pathlib import Path

import pytest

from moldau.protocol.apis import HEARTBEAT, METADATA
from tests.differential import digests, recording
from tests.differential.batches import NOW, T0
from tests.differential.playing import Outcome
from tests.differential.recording import ANY, Recording, certain, changed, decode, encode, uncertain
from tests.differential.script import Step, step
from tests.differential.steps import SCRIPT

TREE = {"id": uuid.UUID(int=7), "data": b"\0x", "time": T0, "list": [1, None, True, "é"], "far": 2**62, "open": ANY}


def test_every_kind_of_value_comes_back() -> None:
    assert decode(json.loads(json.dumps(encode(TREE)))) == TREE
    assert decode(encode(TREE))["open"] is ANY


def test_times_are_kept_as_distances_from_the_run() -> None:
    assert encode([NOW + 5, T0, NOW * 2, 5]) == [{"$now": 5}, {"$now": T0 - NOW}, NOW * 2, 5]


def test_what_two_plays_say_differently_is_not_certain() -> None:
    one, other = ({"a": value, "list": [1, value], "few": [value] * value} for value in (1, 2))
    both = certain(Outcome("reply", one), Outcome("reply", other))
    assert both == Outcome("reply", {"a": ANY, "list": [1, ANY], "few": ANY})
    assert uncertain(both.tree) == 3
    assert certain(Outcome("reply", one), Outcome("closed")).tree is ANY
    assert certain({"a": 1}, {"a": True}) == {"a": ANY}
    assert certain(one, dict(one)) == one


def test_what_was_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "FOLDER", tmp_path)
    outcomes = {"a": Outcome("reply", TREE), "b": Outcome("closed")}
    saved = {"a": {"v": {"$uuid": uuid.UUID(int=7).hex}}}
    made = Recording("1.2.3", {"kafka": "1.2.3", "rules": ["hosts"]}, outcomes, {"a": "1", "b": "2"}, saved)
    recording.write(made)
    assert recording.read("1.2.3") == made
    assert made.rules == {"hosts"}


STEPS = [Step("a", METADATA, 1), Step("b", METADATA, 1)]


def known(**digests: str) -> Recording:
    return Recording("1.2.3", {}, {}, digests, {})


def test_a_changed_a_new_and_a_missing_step_and_another_order_are_named() -> None:
    asked = {"a": "1", "b": "2"}
    assert changed(STEPS, asked, known(a="1", b="2")) == []
    assert changed(STEPS, asked, known(a="1", b="9")) == ["not in the recording as it is asked now: b"]
    assert changed(STEPS, asked, known(a="1")) == ["not in the recording as it is asked now: b"]
    assert changed(STEPS, asked, known(a="1", b="2", c="3")) == ["in the recording, but not in the script: c"]
    assert changed(STEPS, asked, known(b="2", a="1")) == ["the script has another order than the recording"]


def test_digests_are_the_same_whenever_they_are_made_and_another_step_has_another() -> None:
    one = step("a", HEARTBEAT, 1, {"group_id": "g"})
    others = [
        step("a", HEARTBEAT, 2, {"group_id": "g"}),
        step("a", HEARTBEAT, 1, {"group_id": "h"}),
        step("a", HEARTBEAT, 1, {"group_id": "g"}, connection="x"),
        step("a", HEARTBEAT, 1, {"group_id": "g"}, later=True),
        step("a", HEARTBEAT, 1, {"group_id": "g"}, wait_s=1.0),
    ]
    assert digests.digest_of(one, {}) == digests.digest_of(one, {"more": 1})
    assert len({digests.digest_of(each, {}) for each in (one, *others)}) == 1 + len(others)


def test_every_step_has_a_digest_unless_what_it_needs_was_not_saved() -> None:
    saved = recording.read("4.4.0").saved
    found = digests.digests(saved)
    assert list(found) == [one.name for one in SCRIPT]
    assert digests.UNKNOWN not in found.values()
    assert digests.UNKNOWN in digests.digests({}).values()
