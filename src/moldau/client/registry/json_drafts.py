"""The draft of a JSON Schema that names none. Pure."""

from typing import Any, Final

DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"


def drafted(tree: Any) -> Any:
    """The schema, as one of draft 7 if it names no draft and breaks the rules of the newest: Confluent's registry and
    serializers take such a schema for one of draft 7, so its `items` may be a list."""
    import jsonschema_rs

    if isinstance(tree, dict) and "$schema" not in tree and not _is_valid(jsonschema_rs, tree):
        named = {"$schema": DRAFT_7, **tree}
        if _is_valid(jsonschema_rs, named):
            return named
    return tree


def _is_valid(library: Any, tree: Any) -> bool:
    try:
        return bool(library.meta.is_valid(tree))
    except Exception:  # whatever it says of such a schema is said by who uses it
        return False
