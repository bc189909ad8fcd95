"""The table of error codes, and the exception that belongs to each."""

import importlib
import pickle
import pkgutil
import re

import pytest

import moldau
from moldau import errors
from moldau.client.failures import missing
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition

NAMED_OTHERWISE = {ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopic"}
UNMET = re.compile(
    r"NONE|DELEGATION_TOKEN|STALE_CONTROLLER|STALE_BROKER|SHARE_|STREAMS_|TELEMETRY|SUBSCRIPTION_ID|VOTER|SNAPSHOT|PRINCIPAL"
    r"|FETCH_S|REGISTRATION|REGISTERED|UPDATE|INCONSISTENT_(TOPIC|CLUSTER)_ID|ENDPOINT|CONTROLLER_ID|ILLEGAL_SASL|LISTENER"
    r"|MEMBER_ID_REQUIRED|NEW_LEADER|INELIGIBLE|TIERED|NOT_ATTEMPTED|POSITION_OUT|_STATE_EPOCH|RECORD_STATE"
)
"""Codes that only brokers meet, that our clients answer themselves, or of features that they do not have."""


def test_codes_are_kafkas_without_a_gap() -> None:
    assert sorted(code.value for code in ErrorCode) == list(range(-1, 137))
    assert not ErrorCode.NONE
    assert not ErrorCode.NONE.retriable


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_every_code_has_a_sentence_of_its_own(code: ErrorCode) -> None:
    assert 8 < len(code.sentence) < 100
    assert not code.sentence.endswith(".")
    assert [other for other in ErrorCode if other.sentence == code.sentence] == [code]


def test_an_error_without_a_message_says_its_codes_sentence() -> None:
    error = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert str(error) == "the partition has no leader at the moment (LEADER_NOT_AVAILABLE)"
    assert error.message is None
    assert error.retriable
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no")) == "no"


def test_an_exception_of_one_code_is_made_from_a_text_alone() -> None:
    late = errors.RequestTimedOut("x")
    assert (str(late), late.code, late.message, late.retriable) == ("x", ErrorCode.REQUEST_TIMED_OUT, "x", True)
    assert str(errors.NetworkException()) == str(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    assert errors.InvalidProducerEpoch("old").code is ErrorCode.INVALID_PRODUCER_EPOCH
    copy = pickle.loads(pickle.dumps(late))
    assert (type(copy), str(copy), copy.code) == (errors.RequestTimedOut, "x", ErrorCode.REQUEST_TIMED_OUT)


@pytest.mark.parametrize("kind", [KafkaError, errors.CommitFailed, errors.AuthorizationFailed])
def test_an_exception_of_several_codes_needs_one(kind: type[KafkaError]) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__} takes an ErrorCode and then a text, not 'x'"):
        kind("x")
    with pytest.raises(TypeError, match="takes an ErrorCode"):
        errors.RequestTimedOut("x", "y")


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_each_code_that_a_user_meets_is_raised_as_the_exception_of_its_name(code: ErrorCode) -> None:
    error = KafkaError(code, "why")
    name = NAMED_OTHERWISE.get(code, "".join(word.capitalize() for word in code.name.split("_")))
    if UNMET.search(code.name):
        assert type(error) is KafkaError and not hasattr(errors, name)
        return
    assert type(error) is getattr(errors, name)
    assert isinstance(error, KafkaError)
    assert type(error).__doc__
    assert (error.code, error.message, str(error), error.retriable) == (code, "why", "why", code.retriable)
    assert str(KafkaError(code)) == f"{code.sentence} ({code.name})"


def test_each_exception_of_a_code_is_raised_for_one_code_only() -> None:
    kinds = [type(KafkaError(code)) for code in ErrorCode]
    own = [kind for kind in kinds if kind is not KafkaError]
    assert len(set(own)) == len(own)


def test_errors_of_the_connection_are_pythons_own_kinds_too() -> None:
    broken = KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")
    late = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    assert isinstance(broken, ConnectionError) and isinstance(late, TimeoutError)
    assert str(broken) == "gone" and str(late).startswith("the request was not completed")
    assert (broken.errno, late.errno) == (None, None)


@pytest.mark.parametrize(
    ("code", "base"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, errors.AuthorizationFailed),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, errors.AuthorizationFailed),
        (ErrorCode.INVALID_PRODUCER_EPOCH, errors.ProducerFenced),
        (ErrorCode.ILLEGAL_GENERATION, errors.CommitFailed),
        (ErrorCode.REBALANCE_IN_PROGRESS, errors.CommitFailed),
        (ErrorCode.UNKNOWN_MEMBER_ID, errors.CommitFailed),
        (ErrorCode.RECORD_LIST_TOO_LARGE, errors.MessageTooLarge),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, errors.NotEnoughReplicas),
    ],
)
def test_errors_of_one_meaning_share_a_base(code: ErrorCode, base: type[KafkaError]) -> None:
    with pytest.raises(base):
        raise KafkaError(code)


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "topic t: exists"),
        KafkaError(ErrorCode.NETWORK_EXCEPTION),
        KafkaError(ErrorCode.STALE_BROKER_EPOCH),
        missing("topic t"),
    ],
)
def test_an_error_survives_the_way_to_another_process(error: KafkaError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.code, copy.message, copy.retriable) == (
        str(error),
        error.code,
        error.message,
        error.retriable,
    )


def test_a_failure_to_read_a_record_survives_the_way_to_another_process() -> None:
    error = errors.DeserializationFailed(TopicPartition("t", 1), 7, None, b"x", "value", ValueError("no number"))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


INTERNAL = {"BufferFull", "InvalidEvent", "Wide", "DecompressionError", "TooLarge", "UnknownCodec", "UnreadableFile"}
"""Exceptions that are caught where they are raised, or turned into others, before a caller could meet them."""
OF_CLIENTS = ("moldau.client", "moldau.net", "moldau.peers", "moldau.protocol", "moldau.records", "moldau.testing")


def test_every_exception_that_a_call_of_a_client_can_raise_is_in_moldau_errors() -> None:
    elsewhere = set()
    for found in pkgutil.walk_packages(moldau.__path__, "moldau."):
        if found.name.startswith(OF_CLIENTS):
            kinds = [one for one in vars(importlib.import_module(found.name)).values() if isinstance(one, type)]
            elsewhere |= {
                kind.__qualname__
                for kind in kinds
                if issubclass(kind, Exception) and kind.__module__.startswith(OF_CLIENTS) and kind.__name__[0] != "_"
            }
    assert elsewhere == INTERNAL


def test_an_exception_names_the_module_that_it_is_imported_from() -> None:
    for kind in (errors.NotAssigned, errors.NoSuchPartition, errors.RegistryError, errors.TopicAlreadyExists):
        assert kind.__module__ == "moldau.errors"
    assert moldau.NotDelivered is errors.NotDelivered and moldau.serializers.DoesNotFit is errors.DoesNotFit
