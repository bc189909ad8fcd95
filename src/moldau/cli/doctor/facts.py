"""Facts of the doctor as plain JSON values, for its report and its bundle."""

from collections.abc import Mapping
from typing import Any


def plain(facts: Any) -> Any:
    """Facts as JSON has them: tuples with names are objects."""
    if isinstance(facts, tuple) and hasattr(facts, "_asdict"):
        return {name: plain(value) for name, value in facts._asdict().items()}
    if isinstance(facts, Mapping):
        return {str(name): plain(value) for name, value in facts.items()}
    if isinstance(facts, list | tuple | set | frozenset):
        return [plain(one) for one in facts]
    return facts
