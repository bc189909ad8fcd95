"""The topic's records: those of Confluent's registry and of Karapace are taken over, bad ones change nothing."""

import json

import pytest

from moldau.registry.state import RegistryState
from moldau.registry.topic_records import RecordKey, UnreadableRecord, packed_key, read_key, read_value
from tests.registry.asking import LocalRegistry

SCHEMA_KEY = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
TEXT = '{"type":"record","name":"R","fields":[]}'


def value(**fields: object) -> bytes:
    return json.dumps({"subject": "s", "version": 1, "id": 1, "schema": TEXT, "deleted": False, **fields}).encode()


CONFLUENT = [
    (b'{"keytype":"NOOP","magic":0}', None),
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
    (SCHEMA_KEY, value(md5="x", futureField=[1])),
    (b'{"keytype":"SCHEMA","subject":"s","version":2,"magic":1}', value(version=2, id=4, schema='"int"', deleted=True)),
    (b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}', value(subject="t", id=4, schema=' "int"')),
    (b'{"keytype":"SCHEMA","subject":"u","version":1,"magic":1}', value(subject="u", id=5)),
    (b'{"keytype":"DELETE_SUBJECT","subject":"u","magic":0}', b'{"subject":"u","version":1}'),
    (b'{"keytype":"SCHEMA","subject":"v","version":1,"magic":1}', value(subject="v", id=6)),
    (b'{"keytype":"SCHEMA","subject":"v","version":1,"magic":1}', None),
    (b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}', b'{"tenant":"default","context":".c"}'),
    (b'{"keytype":"MODE","subject":"t","magic":0}', b'{"subject":"t","mode":"READONLY"}'),
]  # fmt: skip


def test_a_topic_of_confluents_registry_is_taken_over() -> None:
    registry = LocalRegistry(CONFLUENT)
    assert registry.ask("GET", "/subjects").tree == ["s", "t"]
    assert registry.ask("GET", "/subjects?deleted=true").tree == ["s", "t", "u"]
    assert registry.ask("GET", "/subjects/s/versions").tree == [1]
    assert registry.ask("GET", "/schemas/ids/4").tree == {"schema": '"int"'}
    assert registry.ask("GET", "/schemas/ids/6").tree["error_code"] == 40403
    assert registry.ask("GET", "/config").tree == {"compatibilityLevel": "FULL"}
    assert registry.ask("GET", "/mode/t").tree == {"mode": "READONLY"}
    assert registry.ask("GET", "/contexts").tree == [".", ".c"]
    assert registry.register("s", '{"type": "record", "name": "R", "fields": []}').tree == {"id": 1}
    assert registry.register("fresh", "long").tree == {"id": 7}
    assert registry.register("other", '"int"').tree == {"id": 4}


def test_a_change_of_a_setting_takes_the_key_that_the_topic_has_for_it() -> None:
    registry = LocalRegistry(CONFLUENT)
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    assert registry.topic.records[-1][0] == CONFLUENT[1][0]


def test_a_level_that_is_no_text_counts_as_none() -> None:
    registry = LocalRegistry([(CONFLUENT[1][0], b'{"compatibilityLevel":[]}')])
    assert registry.register("s", TEXT).tree == {"id": 1}


def test_keys_are_written_as_confluents_registry_does() -> None:
    for packed, _ in CONFLUENT:
        if b"null" not in packed:
            assert packed_key(read_key(packed)) == packed
    assert packed_key(RecordKey("CONFIG")) == b'{"keytype":"CONFIG","magic":0}'


@pytest.mark.parametrize(
    ("packed", "content"),
    [
        (None, b"{}"), (b"", b"{}"), (b"\xff", b"{}"), (b"[]", b"{}"), (b'{"keytype":"OTHER"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s"}', value()), (b'{"keytype":"SCHEMA","version":1}', value()),
        (SCHEMA_KEY, b"x"), (SCHEMA_KEY, b"[]"), (SCHEMA_KEY, value(id="1")), (SCHEMA_KEY, value(id=1 << 31)),
        (SCHEMA_KEY, value(id=-1)), (SCHEMA_KEY, value(id=True)), (SCHEMA_KEY, value(schema=None)),
        (SCHEMA_KEY, value(version=2)), (SCHEMA_KEY, value(subject="t")), (SCHEMA_KEY, value(references={"a": 1})),
        (SCHEMA_KEY, value(references=[{"name": "n", "subject": "s", "version": 0}])),
        (SCHEMA_KEY, value(schemaType=1)), (SCHEMA_KEY, value(metadata=1)), (SCHEMA_KEY, b"[" * 50_000),
        (b'{"keytype":"MODE","magic":0}', b'{"mode":1}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"version":"1"}'),
    ],
)  # fmt: skip
def test_a_bad_record_is_reported_and_changes_nothing(packed: bytes | None, content: bytes) -> None:
    registry = LocalRegistry(CONFLUENT)

    def take_in() -> None:
        key = read_key(packed)
        registry.state.apply(key, read_value(key, content, 0), packed)

    with pytest.raises(UnreadableRecord):
        take_in()
    assert registry.ask("GET", "/subjects?deleted=true").tree == ["s", "t", "u"]
    assert registry.ask("GET", "/subjects/s/versions").tree == [1]


def test_ten_thousand_subjects_are_read_without_parsing_a_schema() -> None:
    """The text of each is not even JSON: only what is asked for is parsed."""
    state = RegistryState()
    for number in range(10_000):
        key = RecordKey("SCHEMA", f"s{number}", 1)
        state.apply(key, read_value(key, value(subject=f"s{number}", id=number + 1, schema=f"{{ {number}"), 0))
    assert len(state.subjects(":*:")) == 10_000 and state.max_id(".") == 10_000


def test_a_version_whose_schema_cannot_be_parsed_is_served_and_named_in_comparisons() -> None:
    registry = LocalRegistry([(SCHEMA_KEY, value(schema="{ broken"))])
    assert registry.ask("GET", "/schemas/ids/1").tree == {"schema": "{ broken"}
    answer = registry.register("s", "int")
    assert answer.tree["error_code"] == 40901 and "version 1 cannot be read" in answer.tree["message"]
    assert registry.ask("DELETE", "/subjects/s/versions/1").tree == 1
    assert registry.register("s", "int").tree == {"id": 2}
