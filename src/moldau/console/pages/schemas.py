"""Schemas of the registry that the console was given: subjects, their versions, one schema as text, two compared.

The registry knows the console, not its users: what it lets the console read, each user of the console may read.
"""

import asyncio
import difflib
import json
from collections.abc import Iterator

from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import PROTOBUF, RegisteredSchema
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer
from moldau.console.web.refusing import BAD_REQUEST, NOT_FOUND, PageRefusal
from moldau.console.web.requests import PageRequest
from moldau.errors import RegistryError, SchemaNotFound

ROWS = 100
LATEST = "latest"
VERSIONS_SHOWN = 200
COMPARED_LINES_MAX = 2_000
"""The time of a comparison grows with the product of the lines of both."""


def _registry(console: ConsoleContext) -> SchemaRegistry:
    """Raises `PageRefusal`."""
    if console.settings.registry is None:
        raise PageRefusal(NOT_FOUND, "this console knows no schema registry: start it with --schema-registry URL")
    return console.settings.registry


async def subjects(console: ConsoleContext, request: PageRequest) -> Answer:
    if console.settings.registry is None:
        return console.page(request, "schemas.html", rows=[], paging=paging(request, ROWS, 0), asked="", level=None)
    registry, wanted = _registry(console), request.text("q").strip().lower()
    names, level = await asyncio.gather(asyncio.to_thread(registry.subjects), asyncio.to_thread(registry.compatibility))
    found = sorted(name for name in names if wanted in name.lower())
    part = paging(request, ROWS, len(found))
    return console.page(
        request, "schemas.html", rows=part.of(found), paging=part, asked=request.text("q").strip()[:250], level=level
    )


async def subject(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    registry, version = _registry(console), _version(request, "version")
    try:
        versions, shown, level = await asyncio.gather(
            asyncio.to_thread(registry.versions, name),
            asyncio.to_thread(registry.version, name, version),
            asyncio.to_thread(registry.compatibility, name),
        )
    except SchemaNotFound as missing:
        raise PageRefusal(NOT_FOUND, str(missing)) from None
    return console.page(
        request, "schema.html", name=name, versions=versions[::-1][:VERSIONS_SHOWN], schema=shown, text=_text(shown),
        level=level,
    )  # fmt: skip


def _version(request: PageRequest, field: str) -> str:
    """The version that the query names; the latest if it names none. Raises `PageRefusal`."""
    version = request.text(field).strip() or LATEST
    if version != LATEST and not (version.isascii() and version.isdigit() and len(version) < 12):
        raise PageRefusal(NOT_FOUND, f"{version[:40]!r} is not a version")
    return version


async def compare(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    """Two versions line by line, and what the registry says of the second one after the first."""
    registry = _registry(console)
    try:
        before, after = await asyncio.gather(
            asyncio.to_thread(registry.version, name, _version(request, "from")),
            asyncio.to_thread(registry.version, name, _version(request, "to")),
        )
        against = await asyncio.to_thread(_incompatibilities, registry, name, before, after)
    except SchemaNotFound as missing:
        raise PageRefusal(NOT_FOUND, str(missing)) from None
    lines = await asyncio.to_thread(_compared, _text(before), _text(after))
    return console.page(
        request, "schema_compare.html", name=name, before=before, after=after, lines=lines, against=against
    )


def _incompatibilities(
    registry: SchemaRegistry, subject: str, before: RegisteredSchema, after: RegisteredSchema
) -> list[str] | None:
    """Why the second schema may not follow the first one; None if the registry does not tell."""
    try:
        return registry.incompatibilities(subject, after.schema, before.version)
    except RegistryError:
        return None


def _compared(before: str, after: str) -> list[tuple[str, str]]:
    """Lines of both texts: what is only in the first one is `removed`, only in the second one `added`, else `same`.
    Raises `PageRefusal`."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > COMPARED_LINES_MAX:
        raise PageRefusal(BAD_REQUEST, f"schemas of more than {COMPARED_LINES_MAX:,} lines are not compared here")

    def lines() -> Iterator[tuple[str, str]]:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
            if kind == "equal":
                yield from (("same", line) for line in old[old_start:old_end])
            else:
                yield from (("removed", line) for line in old[old_start:old_end])
                yield from (("added", line) for line in new[new_start:new_end])

    return [*lines()]


def _text(registered: RegisteredSchema) -> str:
    if registered.schema.kind == PROTOBUF:
        return registered.schema.text
    try:
        return json.dumps(json.loads(registered.schema.text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return registered.schema.text
