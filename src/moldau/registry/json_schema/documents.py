"""A JSON Schema with the documents that it refers to: `$ref` by a reference's name, by `$id`, pointer or anchor."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urljoin

from moldau.registry.refusals import invalid_schema
from moldau.registry.texts import json_in

DEPTH_MAX = 100
NODES_MAX = 100_000
REFERENCES_IN_A_ROW_MAX = 100
_OF_DRAFTS = ("http://json-schema.org/", "https://json-schema.org/")
_INDEX = re.compile(r"[0-9]{1,9}")
_NOT_SCHEMAS = frozenset(("enum", "const", "default", "examples"))


def read_json(text: str) -> Any:
    """The schema's JSON. Raises `Refused`."""
    try:
        tree = json_in(text)
    except ValueError as error:
        raise invalid_schema(f"it is not JSON: {error}") from None
    if not isinstance(tree, dict | bool):
        raise invalid_schema("it is neither an object nor true or false")
    return tree


class JsonDocuments:
    """The main document and those of its references. Raises `Refused`."""

    def __init__(self, root: Any, references: Mapping[str, str]):
        self.root = root
        self._documents: dict[str, Any] = {"": root}
        self._bases: dict[int, str] = {}
        self._anchors: dict[str, Any] = {}
        self.references: list[dict[str, Any]] = []
        """The parts of the main document that have a `$ref`."""
        self._nodes = 0
        for name, text in references.items():
            other = read_json(text)
            self._documents[name] = other
            self._index(other, name, 0, False)
        self._index(root, "", 0, True)

    def _index(self, node: Any, base: str, depth: int, is_main: bool) -> None:
        self._nodes += 1
        if depth > DEPTH_MAX or self._nodes > NODES_MAX:
            raise invalid_schema(f"it nests more than {DEPTH_MAX} levels deep, or has more than {NODES_MAX} parts")
        if isinstance(node, list):
            for one in node:
                self._index(one, base, depth + 1, is_main)
        if not isinstance(node, dict):
            return
        own = node.get("$id", node.get("id"))
        if isinstance(own, str) and not own.startswith("#"):
            base = _joined(base, own.rstrip("#"))
            self._documents.setdefault(base, node)
        for anchor in (node.get("$anchor"), own[1:] if isinstance(own, str) and own.startswith("#") else None):
            if isinstance(anchor, str):
                self._anchors[f"{base}#{anchor}"] = node
        self._bases[id(node)] = base
        if is_main and isinstance(node.get("$ref"), str):
            self.references.append(node)
        for name, value in node.items():
            if name not in _NOT_SCHEMAS:
                self._index(value, base, depth + 1, is_main)

    def followed(self, node: Any) -> Any:
        """The schema behind a chain of `$ref`; True for one of the drafts themselves. Raises `Refused`."""
        for _ in range(REFERENCES_IN_A_ROW_MAX):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                return node
            node = self._target(node["$ref"], self._bases.get(id(node), ""))
        raise invalid_schema("a $ref leads back to itself")

    def _target(self, reference: str, base: str) -> Any:
        if reference.startswith(_OF_DRAFTS):
            return True
        where, _, fragment = reference.partition("#")
        for name in (where, _joined(base, where)) if where else (base, ""):
            document = self._documents.get(name)
            if document is None:
                continue
            if not fragment:
                return document
            if f"{name}#{fragment}" in self._anchors:
                return self._anchors[f"{name}#{fragment}"]
            found = list(_pointed(document, fragment))
            if found:
                return found[0]
        raise invalid_schema(f"$ref {reference[:200]!r} leads nowhere")


def _joined(base: str, other: str) -> str:
    try:
        return urljoin(base, other)
    except ValueError:
        return other


def _pointed(document: Any, fragment: str) -> Iterator[Any]:
    """What a JSON pointer leads to, if anything."""
    if not fragment.startswith("/"):
        return
    for part in fragment[1:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and _INDEX.fullmatch(name) and int(name) < len(document):
            document = document[int(name)]
        else:
            return
    yield document
