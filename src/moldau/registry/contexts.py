"""Names of subjects and their contexts: `:.CONTEXT:SUBJECT`; without a prefix a subject is in the context `.`.

A context is a name space of subjects and ids. `:.CONTEXT:` names a context itself; `:*:` all of them, in a prefix that
subjects are looked up by.
"""

from typing import NamedTuple

DEFAULT = "."
ANY = ":*:"
GLOBAL = ":.__GLOBAL:"
SUBJECT_CHARACTERS_MAX = 4_000


class SubjectName(NamedTuple):
    """A subject in its context; `name` is empty for a context itself."""

    context: str
    name: str

    @property
    def text(self) -> str:
        """The shortest way to write it, which is how it is stored."""
        return f"{prefix_of(self.context)}{self.name}"


def prefix_of(context: str) -> str:
    """What the names of a context's subjects begin with."""
    return "" if context == DEFAULT else f":{context}:"


def parse_subject(text: str) -> SubjectName:
    """The subject and context that a text names."""
    if text.startswith(":."):
        context, _, name = text[1:].partition(":")
        return SubjectName(context, name)
    return SubjectName(DEFAULT, text)


def canonical(text: str) -> str:
    """The name as it is stored: `:.:orders` is `orders`."""
    return parse_subject(text).text


def context_of(subject: str) -> str:
    return parse_subject(subject).context


def is_default_context(text: str) -> bool:
    """Whether the text names the default context itself, whose settings are those of the registry."""
    return text in ("", ":.:", ":.", GLOBAL, GLOBAL[:-1])


def is_valid(text: str, may_be_context: bool = False) -> bool:
    """Whether a subject may have this name: no control characters, no reserved name, not empty."""
    subject = parse_subject(text)
    if len(text) > SUBJECT_CHARACTERS_MAX or any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in text):
        return False
    if any(0xD800 <= ord(sign) < 0xE000 for sign in text):
        return False
    if subject.name in ("__GLOBAL", "__EMPTY") or (subject.context == ".__GLOBAL" and not may_be_context):
        return False
    return bool(subject.name) or may_be_context


def qualified(subject: str, parent: str) -> str:
    """The name of a subject that a schema of `parent` refers to: in the parent's context unless it names another."""
    if subject.startswith(":."):
        return canonical(subject)
    return SubjectName(context_of(parent), subject).text


def has_prefix(subject: str, prefix: str) -> bool:
    """Whether the subject is among those with this prefix: `:*:` and a text, `:.CONTEXT:` and a text, or a text alone,
    which is one of the default context."""
    if prefix.startswith(ANY):
        wanted = prefix.removeprefix(ANY)
        return not wanted or parse_subject(subject).name.startswith(wanted)
    given = parse_subject(prefix)
    own = parse_subject(subject)
    return own.context == given.context and own.name.startswith(given.name)


def in_scope(subject: str, scope: str | None) -> bool:
    """Whether a subject is the scope, or in the context that the scope is; None is the whole registry."""
    if scope is None or subject == scope:
        return True
    given = parse_subject(scope)
    return not given.name and parse_subject(subject).context == given.context
