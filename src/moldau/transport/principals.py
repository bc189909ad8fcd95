"""`ssl.principal.mapping.rules`: from the name in a client's certificate to the name of its principal.

A rule is `DEFAULT`, which takes the whole name, or `RULE:pattern/replacement/`, perhaps with an `L` or `U` at its end
for lower or upper case. The first rule whose pattern matches the whole name decides; a client that no rule matches may
not connect. Patterns are regular expressions of Python, which are those of Java as far as rules need them; in a
replacement `$1` is a group, as in Java. Source: Kafka's `SslPrincipalMapper` (KIP-371).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from moldau.errors import ConfigError
from moldau.names import NOBODY
from moldau.transport.distinguished_names import distinguished_name

SETTING = "ssl.principal.mapping.rules"
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)", re.DOTALL)
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")


class MappingRule(NamedTuple):
    """`pattern` is None for the whole name as it is; `case` is L, U or empty."""

    pattern: "re.Pattern[str] | None"
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The name of the principal, None if this rule does not match."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        replaced = self.pattern.sub(lambda match: _expanded(self.replacement, match), name)
        return replaced.lower() if self.case == "L" else replaced.upper() if self.case == "U" else replaced


def parsed_rules(text: str) -> list[MappingRule]:
    """Raises `ConfigError`."""
    rules, at, text = [], 0, text.strip() or "DEFAULT"
    while at < len(text):
        match = _RULE.match(text, at)
        if match is None:
            raise ConfigError(
                f"{SETTING} has {text[at : at + 60]!r}: a rule is DEFAULT or RULE:pattern/replacement/, with commas "
                "between rules"
            )
        whole, pattern, replacement, case = match.groups()
        try:
            rules.append(MappingRule(None) if whole else MappingRule(re.compile(_pythons(pattern)), replacement, case))
        except re.error as error:
            raise ConfigError(f"{SETTING} has the pattern {pattern!r}, which cannot be used: {error}") from None
        at = match.end()
    return rules


def principal_of(certificate: bytes, rules: Sequence[MappingRule]) -> str:
    """The principal of a client with this certificate (DER), such as `User:CN=alice`. Raises `ValueError` if no rule
    matches."""
    name = distinguished_name(certificate)
    for rule in rules:
        mapped = rule.apply(name)
        if mapped == NOBODY:
            raise ValueError(f"{SETTING} makes it {NOBODY}, the name of clients without a certificate")
        if mapped is not None:
            return f"User:{mapped}"
    raise ValueError(f"no rule of {SETTING} is for {name[:200]!r}, the name in its certificate")


def _pythons(pattern: str) -> str:
    return _NAMED_GROUP.sub("(?P<", pattern)


def _expanded(replacement: str, match: "re.Match[str]") -> str:
    """A replacement with the groups of a match, as Java's `Matcher.appendReplacement` writes them: a number ends where
    no group has it."""
    out, at = [], 0
    while at < len(replacement):
        char = replacement[at]
        at += 1
        if char == "\\" and at < len(replacement):
            out.append(replacement[at])
            at += 1
        elif char == "$" and replacement[at : at + 1].isdecimal() and int(replacement[at]) <= match.re.groups:
            end = at + 1
            while replacement[end : end + 1].isdecimal() and int(replacement[at : end + 1]) <= match.re.groups:
                end += 1
            out.append(match[int(replacement[at:end])] or "")
            at = end
        elif char == "$" and (named := re.compile(r"\{(\w+)\}").match(replacement, at)) is not None:
            out.append(match.groupdict().get(named[1]) or "")
            at = named.end()
        else:
            out.append(char)
    return "".join(out)
