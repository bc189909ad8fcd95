"""Bugs of the schema registry put in on purpose: the tests of each rule find them."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.registry.access_rules import READ
from tests.registry import test_access_rules as access
from tests.registry import test_state as state
from tests.registry.asking import record
from tests.registry.avro import test_resolution as resolution
from tests.registry.json_schema import test_json_changes as json_changes
from tests.registry.protobuf import test_protobuf_changes as protobuf_changes
from tests.replacing import Instead, assert_found, nothing, returns

STATE = "moldau.registry.state:RegistryState"
RULES = "moldau.registry.access_rules"
LEVELS = "moldau.registry.levels"
AVRO_A, AVRO_B = record("R", ("a", "int")), record("R", ("b", "int"))
WRONG_PASSWORD = "Basic " + base64.b64encode(b"ann:wrong").decode()


def levels(level: str) -> Callable[[Path], None]:
    return lambda _: resolution.test_each_level_compares_in_its_direction_and_as_far_back_as_it_says(level)


def right(user: str, method: str, path: str, status: int) -> Callable[[Path], None]:
    return lambda folder: access.test_each_right(access.guarded(folder), user, method, path, status)


def taken_over(_: Path) -> None:
    state.test_a_topic_of_confluents_registry_is_taken_over()


BUGS: dict[str, tuple[Instead, Callable[[Path], None]]] = {
    "an id that was given is given again": (Instead(f"{STATE}._note_id", nothing), taken_over),
    "a schema that has an id gets another one": (Instead(f"{STATE}.id_of", returns(None)), taken_over),
    "deleted versions are shown": (
        Instead(f"{STATE}.versions", lambda versions, self, subject, *_: versions(self, subject, True)),
        taken_over,
    ),
    "a deleted subject stays": (Instead(f"{STATE}._delete_subject", nothing), taken_over),
    "the key of another registry is written in our way": (
        Instead(f"{STATE}.forms_of", returns([])),
        lambda _: state.test_a_change_of_a_setting_takes_the_key_that_the_topic_has_for_it(),
    ),
    "backward means forward": (
        Instead(f"{LEVELS}:_between", lambda between, rule, new, old: between(rule, old, new)),
        levels("BACKWARD"),
    ),
    "all levels look at the newest version alone": (
        Instead(f"{LEVELS}:incompatibilities", lambda of, level, new, versions: of(level, new, versions[-1:])),
        levels("FULL_TRANSITIVE"),
    ),
    "a field of Avro needs no default": (
        Instead("moldau.registry.avro.resolution:_Resolution._of_fields", returns([])),
        lambda _: resolution.test_each_rule_of_resolution(
            AVRO_B, AVRO_A, ["READER_FIELD_MISSING_DEFAULT_VALUE /fields/0"]
        ),
    ),
    "a required property may be added": (
        Instead("moldau.registry.json_schema.objects:_required", returns([])),
        lambda _: json_changes.test_each_change(
            json_changes.closed(a=json_changes.INT),
            json_changes.closed("a", a=json_changes.INT),
            ["REQUIRED_ATTRIBUTE_ADDED"],
        ),
    ),
    "a field of Protobuf may have any type": (
        Instead("moldau.registry.protobuf.changes:_Comparison._field", returns([])),
        lambda _: protobuf_changes.test_each_change(
            protobuf_changes.m("int32 a = 1;"), protobuf_changes.m("O a = 1;"), ["FIELD_KIND_CHANGED"]
        ),
    ),
    "who may read a subject may write to it": (
        Instead(f"{RULES}:AccessRules.may", lambda may, self, user, _, subject: may(self, user, READ, subject)),
        right("ann", "POST", "/subjects/shared/versions", 403),
    ),
    "anybody may change the settings of the registry": (
        Instead(f"{RULES}:AccessRules.may_all", returns(True)),
        right("ann", "PUT", "/config", 403),
    ),
    "an id shows the schema of any subject": (
        Instead(f"{RULES}:RequestRules._check_schema", nothing),
        right("ann", "GET", "/schemas/ids/3", 403),
    ),
    "a reference shows the schema of any subject": (
        Instead(f"{RULES}:RequestRules._check_references", nothing),
        lambda folder: access.test_a_reference_does_not_show_what_may_not_be_read(access.guarded(folder)),
    ),
    "lists show subjects that may not be read": (
        Instead(f"{RULES}:RequestRules.may_read", returns(True)),
        lambda folder: access.test_lists_show_only_what_may_be_read(access.guarded(folder)),
    ),
    "any password is right": (
        Instead(f"{RULES}:PasswordHash.matches", returns(True)),
        lambda folder: access.test_nobody_gets_in_without_the_password(access.guarded(folder), WRONG_PASSWORD),
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    bug, check = BUGS[name]
    assert_found(bug, lambda: check(tmp_path_factory.mktemp("registry")))
