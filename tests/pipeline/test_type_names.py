"""Sentences of the pipeline name types as Delta and Spark do, whatever Arrow calls them."""

import pyarrow as pa
import pytest

from moldau.pipeline.decoding.ddl import TYPES, columns_of
from moldau.pipeline.type_names import type_name

NESTED = "struct<a: long, tags: array<string>, by: map<string, decimal(10,2)>>"


@pytest.mark.parametrize("name", ["boolean", "byte", "short", "int", "long", "float", "double", "string", "binary",
                                  "date", "timestamp", "decimal(10,0)", "array<int>", NESTED])  # fmt: skip
def test_a_type_has_the_name_by_which_a_schema_asks_for_it(name: str) -> None:
    assert type_name(columns_of(f"x {name}").field("x").type) == name


def test_variants_and_other_names_are_one_type() -> None:
    assert {type_name(TYPES[name]) for name in ("BIGINT", "LONG")} == {"long"}
    assert type_name(pa.large_list(pa.large_string())) == type_name(pa.list_(pa.string_view())) == "array<string>"
    assert type_name(pa.uint8()) == "uint8", "which no table has"
