"""Requests and answers of the REST interface, as values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.http.targets import UnusableTarget, named_values, path_parts
from moldau.registry.contexts import canonical, is_valid
from moldau.registry.reading import LATEST
from moldau.registry.refusals import Refused, bad_request, invalid_subject, invalid_version
from moldau.registry.texts import strict_json
from moldau.registry.topic_records import ID_MAX, SchemaContent, UnreadableRecord, compact, content_of

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
ACCEPTED = (CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json", "application/*", "*/*")
ACCEPT_UNKNOWN = "confluent-accept-unknown-properties"


def _every_subject(_: str) -> bool:
    return True


@dataclass(frozen=True)
class RestRequest:
    """One request: `parts` are the decoded pieces of its path, `headers` have names in lower case."""

    method: str
    parts: tuple[str, ...]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    target: str = ""
    """The path and query as they were sent, for another instance."""
    may_read: Callable[[str], bool] = _every_subject
    """Whether lists may name a subject to the one who asks."""

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def text(self, name: str) -> str:
        return self.query.get(name, [""])[0]

    def number(self, name: str, default: int) -> int:
        """Raises `Refused`."""
        text = self.text(name)
        if not text:
            return default
        return _number(text, Refused(404, 404, "HTTP 404 Not Found"))

    @property
    def wants_all(self) -> bool:
        """Whether the client takes fields that older ones do not expect."""
        return self.headers.get(ACCEPT_UNKNOWN, "").lower() == "true"

    def tree(self) -> dict[str, Any]:
        """The body. Raises `Refused`."""
        try:
            tree = strict_json(self.body)
        except (ValueError, RecursionError):
            raise bad_request("The body of the request is not JSON") from None
        if not isinstance(tree, dict):
            raise bad_request("The body of the request is not a JSON object")
        return tree

    def content(self) -> SchemaContent:
        """The schema in the body. Raises `Refused`."""
        tree = self.tree()
        try:
            return content_of({**tree, "schema": tree.get("schema") or ""})
        except UnreadableRecord as wrong:
            raise Refused(422, 422, f"The body of the request cannot be used: {wrong}") from None


@dataclass(frozen=True)
class RestAnswer:
    """What is sent back; `body` is JSON."""

    status: int
    body: bytes

    @property
    def media_type(self) -> str:
        return CONTENT_TYPE


def answered(tree: Any) -> RestAnswer:
    return RestAnswer(200, compact(tree).encode("utf-8", "replace"))


def refused(refusal: Refused) -> RestAnswer:
    tree = {"error_code": refusal.code, "message": str(refusal)}
    return RestAnswer(refusal.status, compact(tree).encode("utf-8", "replace"))


def parsed_path(raw: bytes) -> tuple[str, ...]:
    """The pieces of a path, decoded one by one: a subject may have `/` in it, as %2F. Raises `Refused`."""
    try:
        return path_parts(raw)
    except UnusableTarget as wrong:
        raise bad_request(str(wrong)) from None


def parsed_query(raw: bytes) -> dict[str, list[str]]:
    """The values of each name. Raises `Refused`."""
    try:
        return named_values(raw)
    except UnusableTarget as wrong:
        raise bad_request(str(wrong)) from None


def is_acceptable(accept: str) -> bool:
    """Whether an Accept header allows one of the registry's media types."""
    kinds = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    return not accept.strip() or any(kind in ACCEPTED for kind in kinds)


def subject_of(text: str, may_be_context: bool = False) -> str:
    """The subject as it is stored. Raises `Refused`."""
    if not is_valid(text, may_be_context):
        raise invalid_subject(text[:200])
    return canonical(text)


def version_of(text: str) -> int:
    """A version's number, -1 for the latest. Raises `Refused`."""
    if text.strip().lower() == "latest":
        return LATEST
    number = _number(text.strip(), invalid_version(text[:40]))
    if number != LATEST and not 0 < number <= ID_MAX:
        raise invalid_version(text[:40])
    return number


def id_of(text: str) -> int:
    """A schema's id. Raises `Refused`."""
    return _number(text, Refused(404, 404, "HTTP 404 Not Found"))


def _number(text: str, refusal: Refused) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        raise refusal
    return int(text)
