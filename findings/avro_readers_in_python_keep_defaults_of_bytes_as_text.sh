#!/usr/bin/env bash
# What: a reader's schema may give a bytes or fixed field a default, for records that were written before the field was.
#   The two Python libraries for Avro do not return the bytes that the default stands for: fastavro returns the text of
#   the schema itself, a str where every record that has the field gives bytes; Apache's avro returns the text in UTF-8,
#   so that a fixed field of two bytes comes with three. A decimal's default is no Decimal in either.
# Guess: "\u00ff" is the one byte 0xff, as the specification says, and a field has the same type in each record.
# Seen: fastavro 1.13.1, avro 1.12.2, Python 3.11, 2026-11-29, a record without the fields, read with the defaults
#   "\u00ff\u0001" (bytes), "\u00fe\u0000" (fixed, size 2) and "\u0001\u0002" (decimal): fastavro 'ÿ\x01', 'þ\x00',
#   '\x01\x02'; avro b'\xc3\xbf\x01', b'\xc3\xbe\x00', b'\x01\x02'.
# Source: https://avro.apache.org/docs/1.12.0/specification/ (defaults of bytes and fixed fields are strings, in which
#   the code points 0-255 stand for the bytes 0-255); the difference is not documented.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet fastavro==1.13.1 avro==1.12.2
cat >defaults.py <<'PYTHON'
import io
import json
import sys

import avro.io
import avro.schema
import fastavro


def record(*more: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}, *more]}


decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
written = record()
read = record(
    {"name": "raw", "type": "bytes", "default": "\u00ff\u0001"},
    {"name": "pair", "type": {"type": "fixed", "name": "Pair", "size": 2}, "default": "\u00fe\u0000"},
    {"name": "amount", "type": decimal, "default": "\u0001\u0002"},
)
buffer = io.BytesIO()
fastavro.schemaless_writer(buffer, written, {"id": 1})
by_fastavro = fastavro.schemaless_reader(io.BytesIO(buffer.getvalue()), written, read)
schemas = [avro.schema.parse(json.dumps(one)) for one in (written, read)]
by_avro = avro.io.DatumReader(*schemas).read(avro.io.BinaryDecoder(io.BytesIO(buffer.getvalue())))
print("by the specification: raw b'\\xff\\x01', pair b'\\xfe\\x00', amount 2.58")
print("fastavro:", by_fastavro)
print("avro:    ", by_avro)
TEXT = {"id": 1, "raw": "ÿ\x01", "pair": "þ\x00", "amount": "\x01\x02"}
UTF_8 = {"id": 1, "raw": b"\xc3\xbf\x01", "pair": b"\xc3\xbe\x00", "amount": b"\x01\x02"}
sys.exit((by_fastavro, by_avro) != (TEXT, UTF_8))
PYTHON
venv/bin/python defaults.py 2>log || { code=$?; tail -n 5 log >&2; exit "$code"; }
