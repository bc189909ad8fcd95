"""The settings of a subscription to metrics of clients: what is taken, and what is refused with which code."""

import pytest

from moldau.config.client_metrics import (
    CLIENT_METRICS_SETTINGS,
    client_metrics_config,
    client_metrics_refusal,
    match_expressions,
)
from moldau.errors import ErrorCode

pytestmark = pytest.mark.re2


def test_defaults_ask_for_nothing_every_five_minutes_of_every_client() -> None:
    assert [(one.name, one.default) for one in CLIENT_METRICS_SETTINGS.values()] == [
        ("metrics", ()),
        ("interval.ms", 300_000),
        ("match", ()),
    ]


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"metrics": "*"},
        {"metrics": "org.apache.kafka.producer., org.apache.kafka.consumer."},
        {"interval.ms": "100"},
        {"interval.ms": "3600000"},
        {"match": ""},
        {"match": "client_id=app-.*, client_software_name=(apache|librdkafka).*"},
        {"match": "client_source_port=[0-9]+"},
        {"match": "client_id=x="},
    ],
)
def test_what_can_be_meant_is_taken(overrides: dict[str, str]) -> None:
    assert client_metrics_refusal(overrides) is None


@pytest.mark.parametrize(
    ("overrides", "code", "sentence"),
    [
        ({"interval": "5000"}, ErrorCode.INVALID_REQUEST, "no setting of client metrics, which have metrics"),
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST, "must be 100 to 3600000 (an hour), not 99"),
        ({"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST, "not 3600001"),
        ({"interval.ms": "soon"}, ErrorCode.INVALID_CONFIG, "must be a whole number"),
        ({"metrics": "a.,,b."}, ErrorCode.INVALID_CONFIG, "metrics has an empty item between two commas"),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG, "ATTRIBUTE=EXPRESSION"),
        ({"match": "client_id="}, ErrorCode.INVALID_CONFIG, "ATTRIBUTE=EXPRESSION"),
        ({"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG, "ATTRIBUTE=EXPRESSION"),
        ({"match": "=a"}, ErrorCode.INVALID_CONFIG, "the attributes are client_instance_id"),
        ({"match": "host=a"}, ErrorCode.INVALID_CONFIG, "not 'host=a'"),
        ({"match": "client_id=["}, ErrorCode.INVALID_CONFIG, "the expression of client_id"),
        ({"match": "client_id=(a{1000}){1000}"}, ErrorCode.INVALID_CONFIG, "the expression of client_id"),
        ({"match": "client_id=(?=a)"}, ErrorCode.INVALID_CONFIG, "ATTRIBUTE=EXPRESSION"),
        ({"match": r"client_id=(a)\1"}, ErrorCode.INVALID_CONFIG, "the expression of client_id"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_kafkas_code(
    overrides: dict[str, str], code: ErrorCode, sentence: str
) -> None:
    refusal = client_metrics_refusal(overrides)
    assert refusal is not None
    assert refusal[0] is code
    assert sentence in refusal[1]


def test_of_two_expressions_for_one_attribute_the_latter_counts() -> None:
    config = client_metrics_config({"match": "client_id=a,client_id = b,client_source_address=::1", "gone": "x"})
    assert match_expressions(config.match) == {"client_id": "b", "client_source_address": "::1"}
