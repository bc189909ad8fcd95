"""Java's .properties syntax, case by case."""

from pathlib import Path

import pytest

from moldau.config import parse_properties, read_properties
from moldau.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a: 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t=\t1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=1", {"": "1"}),
        ("a==1", {"a": "=1"}),
        ("a=b:c d", {"a": "b:c d"}),
        ("# a=1\n  ! b=2\n\n   \nc=3", {"c": "3"}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x,\\\n   y,\\\r\n   z", {"a": "x,y,z"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=x\\\n# no comment", {"a": "x# no comment"}),
        (r"a\=b=1", {"a=b": "1"}),
        (r"a\ b\:c = 1", {"a b:c": "1"}),
        (r"path=C:\\data\\kafka", {"path": r"C:\data\kafka"}),
        (r"a=\t\n\r\f\q", {"a": "\t\n\r\fq"}),
        (r"a=\u00e9\u4E2D", {"a": "é中"}),
        ("a=ü", {"a": "ü"}),
    ],
)
def test_a_line_says_what_java_reads_in_it(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\uwxyz", r"a=\u+123"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="four hexadecimal digits"):
        parse_properties(text)


def test_a_file_is_read_with_its_byte_order_mark_dropped(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"\xef\xbb\xbfnode.id=7\n")
    assert read_properties(path) == {"node.id": "7"}


@pytest.mark.parametrize(
    ("content", "why"), [(None, "cannot read"), (b"\xff\xfe\x00", "not UTF-8"), (b"a" * (1 << 21), "larger than")]
)
def test_a_file_that_is_no_file_of_settings_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "server.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=why) as refused:
        read_properties(path)
    assert "\n" not in str(refused.value)


def test_a_broken_line_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("a=\\u1")
    with pytest.raises(ConfigError, match=r"server\.properties"):
        read_properties(path)
