"""Settings and modes in their scopes: of a subject, else of its context, else of the registry."""

from typing import Any

from moldau.registry.contexts import DEFAULT, GLOBAL, context_of, is_default_context, prefix_of
from moldau.registry.levels import DEFAULT_LEVEL, LEVELS
from moldau.registry.state import RegistryState

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
IMPORTING = ("IMPORT", "FORWARD")
READ_ONLY = ("READONLY", "READONLY_OVERRIDE")
DEFAULT_MODE = "READWRITE"


def scope_of(subject: str | None) -> str | None:
    """The key under which the settings of a subject, a context or the registry (None) are stored."""
    return None if subject is None or is_default_context(subject) else subject


def _scopes(subject: str | None) -> list[str | None]:
    """From the narrowest to the widest."""
    found: list[str | None] = [] if subject is None else [subject]
    if subject is not None and context_of(subject) != DEFAULT:
        found.append(prefix_of(context_of(subject)))
    return list(dict.fromkeys([*found, GLOBAL, None]))


def config_in_scope(state: RegistryState, subject: str | None) -> dict[str, Any]:
    """The settings that apply: what a narrower scope leaves out comes from the wider ones."""
    found: dict[str, Any] = {"compatibilityLevel": DEFAULT_LEVEL}
    for scope in reversed(_scopes(subject)):
        found |= state.configs.get(scope, {})
    return found


def level_in_scope(state: RegistryState, subject: str) -> str:
    level = config_in_scope(state, subject).get("compatibilityLevel")
    return level if isinstance(level, str) and level in LEVELS else DEFAULT_LEVEL


def normalizes(state: RegistryState, subject: str) -> bool:
    return config_in_scope(state, subject).get("normalize") is True


def mode_in_scope(state: RegistryState, subject: str | None) -> str:
    """The mode that applies. READONLY_OVERRIDE of the registry goes before the modes of subjects."""
    everywhere = state.modes.get(None, state.modes.get(GLOBAL))
    if everywhere == "READONLY_OVERRIDE":
        return everywhere
    found = (state.modes[scope] for scope in _scopes(subject) if scope in state.modes)
    return next(found, DEFAULT_MODE)
