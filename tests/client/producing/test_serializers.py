"""Serializers: what they make of values, and which values they refuse."""

import pytest

from moldau.client.producing.serializers import from_json, from_text, to_bytes, to_json, to_text


def test_bytes_and_buffers_stay_and_text_becomes_utf_8() -> None:
    assert [to_bytes(one) for one in (b"x", bytearray(b"x"), memoryview(b"x"), "\u017e", None)] == [
        b"x",
        b"x",
        b"x",
        b"\xc5\xbe",
        None,
    ]


@pytest.mark.parametrize("wrong", [5, 1.5, [1, 2], {"a": 1}, True, object()])
def test_numbers_lists_and_objects_are_no_bytes(wrong: object) -> None:
    with pytest.raises(TypeError):
        to_bytes(wrong)  # type: ignore[arg-type]


def test_text_refuses_bytes() -> None:
    assert (to_text("\u017e"), to_text(None)) == (b"\xc5\xbe", None)
    with pytest.raises(TypeError, match="bytes is not str"):
        to_text(b"x")  # type: ignore[arg-type]


def test_json_is_utf_8_without_spaces_and_none_is_a_tombstone() -> None:
    value = {"river": "Vltava", "žlutý": [1, 2.5, None, True]}
    assert to_json(value) == '{"river":"Vltava","žlutý":[1,2.5,null,true]}'.encode()
    assert from_json(to_json(value)) == value
    assert (to_json(None), from_json(None)) == (None, None)


@pytest.mark.parametrize("wrong", [object(), {1, 2}, float("nan"), float("inf")])
def test_json_refuses_what_it_cannot_hold(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        to_json(wrong)


def test_text_is_read_back() -> None:
    assert (from_text(b"\xc5\xbe"), from_text(None)) == ("\u017e", None)
    with pytest.raises(UnicodeDecodeError):
        from_text(b"\xff")
