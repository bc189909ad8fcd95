"""The documents in the store's nodes: JSON of the shape that `layout` describes. Pure.

One that does not have its shape raises `MalformedMetadata`, which names its path.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import index
from typing import Any

from moldau.errors import StorageError
from moldau.metadata_store.store import Node, Reading, children_of, nodes_at


class MalformedMetadata(StorageError):
    """A node does not hold the document that belongs there."""


def document(node: Node, path: str) -> Any:
    """The JSON in a node. Raises `MalformedMetadata` if it is not JSON."""
    try:
        return json.loads(node.data)
    except (ValueError, RecursionError):
        raise MalformedMetadata(f"the metadata at {path} is not JSON") from None


@contextmanager
def expecting(what: str, path: str) -> Iterator[None]:
    """Turn every error of reading a document into `MalformedMetadata`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as wrong:
        raise MalformedMetadata(f"the metadata at {path} is not that of {what}: {wrong!r}") from wrong


def as_numbers(values: Iterable[Any]) -> tuple[int, ...]:
    """The values, which have to be whole numbers. Raises `TypeError`."""
    return tuple(index(value) for value in values)


def as_text(value: Any) -> str:
    """The value, which has to be text. Raises `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def overrides(node: Node, path: str) -> dict[str, str]:
    """The settings in a node."""
    with expecting("settings", path):
        return {name: as_text(value) for name, value in document(node, path)["config"].items()}


def read_below(parent: str) -> Reading[list[tuple[str, str, Node]]]:
    """The name, path and node of each child."""
    names = yield from children_of(parent)
    paths = [f"{parent}/{name}" for name in names]
    nodes = yield from nodes_at(paths)
    return [(name, path, node) for name, path, node in zip(names, paths, nodes, strict=True) if node]
