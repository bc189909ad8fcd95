"""Every message of ours in every version means the same to kio, which was generated from Kafka's own definitions.

Versions that kio does not have yet (`kio_reference.KIO_LACKS`) are compared in `test_messages_against_kafka.py`.
"""

import dataclasses
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import UnknownEntity, load_request_schema, load_response_schema

from harness.tiers import examples
from moldau.protocol import schema
from moldau.protocol.apis import ALTER_PARTITION, APIS, ASSIGN_REPLICAS_TO_DIRS, ENVELOPE, Api
from moldau.protocol.primitives import ZERO_UUID
from tests.protocol import drawn
from tests.protocol.kio_reference import (
    KIO_LACKS,
    OURS_BY_KIO_TYPE,
    RENAMED,
    KioField,
    kio_bytes,
    kio_fields,
    kio_read,
    our_fields,
    our_plain,
    plain,
    to_kio,
)

MESSAGES = [
    pytest.param(api, version, side, id=f"{api.name}{side}-v{version}")
    for api in (*APIS.values(), ALTER_PARTITION, ENVELOPE, ASSIGN_REPLICAS_TO_DIRS)
    for version in range(max(api.low, api.lowest), api.high + 1)
    if (api, version) not in KIO_LACKS
    for side in ("Request", "Response")
]
every_message = pytest.mark.parametrize(("api", "version", "side"), MESSAGES)
few = settings(max_examples=examples(2, 4), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@cache  # kio imports a module for each version
def classes(api: Api, version: int, side: str) -> tuple[type[Any], type[Any]]:
    """Our class and kio's."""
    if side == "Request":
        return api.request, load_request_schema(api.key, version)
    return api.response, load_response_schema(api.key, version)


@pytest.mark.parametrize(("api", "version"), KIO_LACKS, ids=lambda value: str(getattr(value, "name", value)))
def test_kio_still_lacks_what_the_table_says(api: Api, version: int) -> None:
    """If this fails, take the version out of `KIO_LACKS`: kio is the better witness."""
    with pytest.raises(UnknownEntity):
        load_request_schema(api.key, version)


@every_message
def test_kio_has_the_same_fields_in_the_same_order(api: Api, version: int, side: str) -> None:
    ours, theirs = classes(api, version, side)
    assert theirs.__flexible__ == api.is_flexible(version)
    assert differences(ours, theirs, version, api.is_flexible(version)) == []


def differences(ours: type, theirs: type, version: int, flexible: bool) -> list[str]:
    our_list, their_list = our_fields(ours, version), kio_fields(theirs)
    if len(our_list) != len(their_list):
        return [f"{ours.__name__}: {[name for name, *_ in our_list]} is not {[f.name for f in their_list]}"]
    found = []
    for (name, spec, default), field in zip(our_list, their_list, strict=True):
        where = f"{ours.__name__}.{name}"
        if RENAMED.get((ours, name), name).removesuffix("_ms").replace("_", "") != field.name.replace("_", ""):
            found.append(f"{where} is called {field.name}")
        if spec.array != field.array:
            found.append(f"{where} is an array on one side only")
        tag = spec.tag if spec.tag is not None and flexible and version >= spec.tagged_since else None
        if tag != field.tag:
            found.append(f"{where} has tag {tag}, not {field.tag}")
        if isinstance(spec.kind, type):
            found += (
                differences(spec.kind, field.struct, version, flexible) if field.struct else [f"{where}: no struct"]
            )
        elif spec.kind != OURS_BY_KIO_TYPE.get(field.kafka_type or "", field.kafka_type):
            found.append(f"{where} is {spec.kind}, not {field.kafka_type}")
        nullable = spec.nullable <= version <= spec.nullable_until
        if field.kafka_type not in ("uuid", "datetime_i64") and nullable != field.nullable:
            found.append(f"{where} is {'nullable' if nullable else 'not nullable'} here")
        found += wrong_default(where, default, field, version)
    return found


def wrong_default(where: str, default: Any, field: KioField, version: int) -> list[str]:
    """kio names a default only where Kafka's definition does; an array's is empty in both."""
    if field.default is dataclasses.MISSING or field.array:
        return []
    ours, theirs = our_plain(default, version), plain(field.default, field)
    return [] if ours in (theirs, ZERO_UUID) else [f"{where} is {ours} by default, not {theirs}"]


@every_message
@few
@given(data=st.data())
def test_kio_and_we_write_the_same_bytes_and_each_reads_what_the_other_writes(
    api: Api, version: int, side: str, data: st.DataObject
) -> None:
    our_class, kio_class = classes(api, version, side)
    message = data.draw(drawn.messages(our_class, kio_class, version))
    meant, flexible = our_plain(message, version), api.is_flexible(version)
    written = bytes(schema.write(message, version, flexible))
    theirs, size = kio_read(kio_class, written)
    assert size == len(written)
    assert plain(theirs) == meant
    assert kio_bytes(to_kio(message, kio_class, version)) == written
    ours, end = schema.read(our_class, version, flexible, written)
    assert end == len(written)
    assert our_plain(ours, version) == meant


@every_message
def test_fields_that_a_version_lacks_are_read_as_their_defaults(api: Api, version: int, side: str) -> None:
    our_class, _ = classes(api, version, side)
    flexible = api.is_flexible(version)
    read, _ = schema.read(our_class, version, flexible, schema.write(our_class(), version, flexible))
    for name, _, default in schema.specs(our_class):
        value = getattr(read, name)
        assert value == default or (value == b"" and default is None) or value == plain_default(default), name


def plain_default(default: Any) -> Any:
    return default() if callable(default) else default
