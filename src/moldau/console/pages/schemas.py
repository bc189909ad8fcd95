"""Schemas of the registry that the console was given: subjects, their versions, one schema as text.

The registry knows the console, not its users: what it lets the console read, each user of the console may read.
"""

import asyncio
import json

from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import PROTOBUF, RegisteredSchema
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer
from moldau.console.web.refusing import NOT_FOUND, PageRefusal
from moldau.console.web.requests import PageRequest
from moldau.errors import SchemaNotFound

ROWS = 100
LATEST = "latest"


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
    registry, version = _registry(console), request.text("version").strip() or LATEST
    if version != LATEST and not (version.isascii() and version.isdigit()):
        raise PageRefusal(NOT_FOUND, f"{version[:40]!r} is not a version")
    try:
        versions, shown, level = await asyncio.gather(
            asyncio.to_thread(registry.versions, name),
            asyncio.to_thread(registry.version, name, version),
            asyncio.to_thread(registry.compatibility, name),
        )
    except SchemaNotFound as missing:
        raise PageRefusal(NOT_FOUND, str(missing)) from None
    return console.page(
        request, "schema.html", name=name, versions=versions[::-1], schema=shown, text=_text(shown), level=level
    )


def _text(registered: RegisteredSchema) -> str:
    if registered.schema.kind == PROTOBUF:
        return registered.schema.text
    try:
        return json.dumps(json.loads(registered.schema.text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return registered.schema.text
