"""Documents of a log's files as lines: for people, or as JSON.

For people a file is a line of its own, and what is in it follows, one line each: what it is, then `name=value` for
everything that says something. In JSON every line is one object. A byte string is its text where it is UTF-8; where it
is not, it is base64 under its name with `_base64` behind it (for people: `base64(...)`).
"""

import dataclasses
import json
from typing import Any

from moldau.cli.output import named_content, time_text
from moldau.files.inspection.findings import CheckedTotals, Finding
from moldau.names import counted

_TIMES = ("timestamp_ms", "base_timestamp_ms", "max_timestamp_ms", "delete_horizon_ms")

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_NOUNS = {
    "offset_index_entry": "entry",
    "time_index_entry": "entry",
    "aborted_transaction": "aborted",
    "partition_offset": "of",
    "leader_epoch": "leader",
    "topic_id": "topic",
    "property": "property",
    "clean_stop": "clean stop",
}


def json_line(document: dict[str, Any]) -> bytes:
    return json.dumps(_shown(document), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        out: dict[str, Any] = {}
        for name, content in value.items():
            if isinstance(content, bytes):
                name, content = named_content(name, content)
            elif name == "headers":
                content = [{"name": key, **_shown({"value": data})} for key, data in content]
            out[name] = _shown(content)
        return out
    return [_shown(item) for item in value] if isinstance(value, list | tuple) else value


def text_line(document: dict[str, Any]) -> bytes:
    """As people read it."""
    fields = dict(document)
    kind = fields.pop("type")
    if kind == "file":
        line = f"{fields['path']}: {fields['kind']}, {fields['size']:,} bytes"
    elif kind in ("problem", "note"):
        where = f" at position {fields['position']}" if "position" in fields else ""
        line = f"  {kind}{where}: {fields['message']}"
    elif kind == "batch":
        line = f"  batch {_batch(fields)}"
    elif kind == "record":
        line = f"    record {fields.pop('offset')} {_pairs(fields)}"
    else:
        line = f"  {_NOUNS.get(kind, kind)} {_pairs(fields)}".rstrip()
    return _line(line)


def _line(text: str) -> bytes:
    """What a terminal would take for a command is shown as what it is: files may hold anything."""
    return text.translate(_CONTROLS).encode("utf-8", "backslashreplace") + b"\n"


def _batch(fields: dict[str, Any]) -> str:
    first, last = fields.pop("base_offset", None), fields.pop("last_offset")
    valid, control = fields.pop("valid"), fields.pop("control", False)
    flags = [name for name in ("transactional",) if fields.pop(name, False)]
    flags += ["control"] * control + ["checksum-wrong"] * (not valid)
    if fields.get("producer_id", -1) < 0:
        for name in ("producer_id", "producer_epoch", "base_sequence", "last_sequence"):
            fields.pop(name, None)
    offsets = f"{last}" if first is None else f"{first}-{last}"
    return " ".join([offsets, *flags, _pairs(fields)])


def _pairs(fields: dict[str, Any]) -> str:
    said = [(name, value) for name, value in fields.items() if _says(name, value)]
    return " ".join(
        f"{name.removesuffix('_ms') if name in _TIMES else name}={_value(name, value)}" for name, value in said
    )


def _says(name: str, value: Any) -> bool:
    return value != [] if name == "headers" else value is not None or name in ("key", "value")


def _value(name: str, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        key, text = named_content(name, value)
        return json.dumps(text, ensure_ascii=False) if key == name else f"base64({text})"
    if name in _TIMES and value >= 0:
        return time_text(value)
    if isinstance(value, bool | dict | list | tuple):
        return json.dumps(_shown({name: value})[name], ensure_ascii=False)
    return str(value)


def finding_as_text(finding: Finding) -> bytes:
    kind = "error" if finding.wrong else "note"
    return _line(f"{kind}: {finding.path}: {finding.message}")


def finding_as_json(finding: Finding) -> bytes:
    kind = "error" if finding.wrong else "note"
    return json_line({"type": kind, "path": str(finding.path), "message": finding.message})


def seen_as_text(seen: CheckedTotals, errors: int, notes: int) -> bytes:
    counts = (
        counted(seen.partitions, "partition"),
        counted(seen.segments, "segment"),
        counted(seen.batches, "batch", "batches"),
        counted(seen.records, "record"),
        counted(seen.bytes, "byte"),
    )
    outcome = counted(errors, "error") if errors else "all is well"
    noted = f", {counted(notes, 'note')}" if notes else ""
    return f"{', '.join(counts)}: {outcome}{noted}\n".encode()


def seen_as_json(seen: CheckedTotals, errors: int, notes: int) -> bytes:
    return json_line({"type": "summary", **dataclasses.asdict(seen), "errors": errors, "notes": notes})
