"""Takes secrets out of settings and texts, for a bundle that is sent to others. Pure.

A setting is a secret if Kafka says so, or if its name does. The values of secrets, and every word in quotes of a login
module's options, are then looked for in all other texts, in the forms that they have in URLs and in base64 too. Texts
also lose what looks like a secret without being known: keys and certificates in PEM, tokens, passwords in URLs.
"""

import base64
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, Final

from moldau.config import SETTINGS, SettingType

HIDDEN: Final = "[hidden]"
SHORTEST: Final = 4
"""Shorter values are hidden in settings only: as parts of words they would be everywhere."""
_NAMES: Final = re.compile(
    r"passw|passphrase|secret|jaas|token|credential|private|api[._-]?key|oauth|\.key$|key\.pem|keystore\.key",
    re.IGNORECASE,
)
_NOT_SECRET: Final = re.compile(
    r"(\.location|\.file|\.type|\.url|\.class|\.ms|\.hours|\.enable|\.name|\.max|\.num)$", re.IGNORECASE
)
_QUOTED: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|=\s*([^\s\"';,\]]+)")
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL)
_TOKENS: Final = re.compile(r"eyJ[\w-]{5,}\.[\w-]+\.?[\w-]*|(?<=[Bb]earer )[\w.~+/=-]+|(?<=[Bb]asic )[\w+/=-]{8,}")
_URLS: Final = re.compile(r"(?<=://)([^\s/:@]+):([^\s/@]+)(?=@)")
_GIVEN: Final = re.compile(
    r"((?:[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|credential|api[_-]?key)[\w.-]*)[\"']?\s*[=:]\s*)"
    r"(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,;&}\]]+)",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret, of any program."""
    setting = SETTINGS.get(name)
    if setting is not None and (setting.sensitive or setting.kind is SettingType.PASSWORD):
        return True
    if setting is not None:
        return False
    return bool(_NAMES.search(name)) and not _NOT_SECRET.search(name)


class Redactor:
    """`secrets` grows with the settings that are shown to it; then `text` hides them in anything."""

    def __init__(self, secrets: Iterable[str] = ()):
        self._secrets: dict[str, None] = {}
        for secret in secrets:
            self.learn(secret)

    def learn(self, secret: str) -> None:
        """Hide this text from now on, and each of its lines."""
        for one in (secret, secret.strip(), *secret.split("\n")):
            if len(one.strip()) >= SHORTEST:
                self._secrets |= dict.fromkeys(_forms(one.strip()))

    def learn_settings(self, properties: Mapping[str, str]) -> None:
        for name, value in properties.items():
            for _, password in _URLS.findall(value):
                self.learn(password)
            if is_secret(name):
                self.learn(value)
                for groups in _QUOTED.findall(value):
                    self.learn(next(filter(None, groups), ""))

    def settings(self, properties: Mapping[str, str | None]) -> dict[str, str | None]:
        """The same, without the values of secrets."""
        return {
            name: value if value is None else HIDDEN if is_secret(name) else self.text(value)
            for name, value in properties.items()
        }

    def text(self, text: str) -> str:
        text = _PEM.sub(HIDDEN, text)
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        text = _TOKENS.sub(HIDDEN, text)
        text = _URLS.sub(HIDDEN, text)
        return _GIVEN.sub(rf"\1{HIDDEN}", text)

    def data(self, data: Any) -> Any:
        """What becomes JSON, with each text in it redacted."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, Mapping):
            return {self.text(str(key)): self.data(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.data(one) for one in data]
        return data


def _forms(secret: str) -> list[str]:
    raw = secret.encode()
    escaped = secret.replace("\\", "\\\\").replace('"', '\\"')
    encoded = base64.b64encode(raw).decode()
    return [
        secret,
        escaped,
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        encoded,
        encoded.rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        raw.hex(),
    ]
