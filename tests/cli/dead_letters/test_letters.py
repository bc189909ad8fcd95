"""What the headers of dead letters say, as four programs write them."""

import struct

import pytest

from moldau.cli.dead_letters.letters import DeadLetter, WantedLetters, letter_in

OWN = ("trace", b"7")


def letter(**fields: object) -> DeadLetter:
    usual = {"topic": "orders", "partition": 3, "offset": 42, "exception": "E", "message": "no", "stacktrace": "at x"}
    return DeadLetter(**{**usual, "own": [OWN], **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ["__moldau.errors.", "__streams.errors."])
def test_headers_of_kafka_streams_and_of_ours_are_text(prefix: str) -> None:
    texts = {
        "topic": "orders",
        "partition": "3",
        "offset": "42",
        "exception": "E",
        "message": "no",
        "stacktrace": "at x",
    }
    assert letter_in([OWN, *((prefix + name, text.encode()) for name, text in texts.items())]) == letter()


def test_headers_of_kafka_connect_name_the_exceptions_class() -> None:
    texts = {
        "topic": "orders", "partition": "3", "offset": "42", "exception.class.name": "E", "exception.message": "no",
        "exception.stacktrace": "at x", "connector.name": "sink", "stage": "VALUE_CONVERTER",
    }  # fmt: skip
    assert letter_in([OWN, *((f"__connect.errors.{name}", text.encode()) for name, text in texts.items())]) == letter()


def test_headers_of_spring_have_numbers_in_binary() -> None:
    headers = {
        "original-topic": b"orders", "original-partition": struct.pack(">i", 3),
        "original-offset": struct.pack(">q", 42), "exception-fqcn": b"E", "exception-message": b"no",
        "exception-stacktrace": b"at x",
    }  # fmt: skip
    assert letter_in([OWN, *((f"kafka_dlt-{name}", value) for name, value in headers.items())]) == letter()


def test_a_record_that_failed_again_has_its_last_failure() -> None:
    first = [("__moldau.errors.topic", b"a"), ("__moldau.errors.message", b"first")]
    again = [("__moldau.errors.topic", b"b"), ("__moldau.errors.message", b"again")]
    found = letter_in([*first, *again])
    assert found is not None and (found.topic, found.message) == ("b", "again")


def test_a_record_without_such_headers_is_no_dead_letter() -> None:
    assert letter_in([OWN]) is None


@pytest.mark.parametrize("value", [b"", b"x", b"-1", None, b"9" * 40])
def test_what_is_no_number_is_unknown(value: bytes | None) -> None:
    found = letter_in([("__moldau.errors.topic", b"orders"), ("__moldau.errors.offset", value)])
    assert found is not None and found.offset is None
    spring = letter_in([("kafka_dlt-original-offset", value), ("kafka_dlt-original-topic", None)])
    assert spring is not None and (spring.topic, spring.offset) == ("", None)


def test_the_place_says_what_is_known() -> None:
    assert letter().place == "orders-3@42"
    assert letter(partition=None, offset=None).place == "orders"
    assert letter(topic=None, partition=None, offset=None).place == "?"


def test_letters_are_chosen_by_topic_and_by_a_text() -> None:
    one = letter(exception="java.lang.TimeoutException", message="broker 3")
    assert (
        WantedLetters().takes(one)
        and WantedLetters("orders", "timeout").takes(one)
        and WantedLetters(text="BROKER").takes(one)
    )
    assert not WantedLetters("others").takes(one) and not WantedLetters(text="ValueError").takes(one)
