"""Reads the words of a `.proto` text one after the other."""

from moldau.client.registry.proto.tokens import Word, tokens, unquoted
from moldau.errors import SchemaInvalid


class WordReader:
    """Every method raises `SchemaInvalid` for a word that may not be there."""

    def __init__(self, text: str):
        self._tokens = tokens(text)
        self._at = 0

    @property
    def peek(self) -> Word:
        """The next word."""
        return self._tokens[self._at]

    @property
    def following(self) -> Word:
        """The word behind the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    @property
    def is_at_end(self) -> bool:
        return self.peek.kind == "end"

    def take(self) -> Word:
        token = self.peek
        if token.kind == "end":
            raise self.wrong("the end of the text")
        self._at += 1
        return token

    def took(self, word: str) -> str:
        """The word, if it is the next one, else an empty text."""
        if self.peek.text != word or self.peek.kind == "text":
            return ""
        self._at += 1
        return word

    def expect(self, word: str) -> None:
        if not self.took(word):
            raise self.wrong(f"{self.peek.text[:40]!r}, where {word!r} is due")

    def name(self) -> str:
        token = self.take()
        if token.kind != "name":
            raise self.wrong(f"{token.text[:40]!r}, where a name is due")
        return token.text

    def dotted(self, may_be_absolute: bool = False) -> str:
        """`a.b.c`."""
        start = self.took(".") if may_be_absolute else ""
        parts = [self.name()]
        while self.took("."):
            parts.append(self.name())
        return start + ".".join(parts)

    def text(self) -> bytes:
        """One text, or several that stand one behind the other."""
        if self.peek.kind != "text":
            raise self.wrong(f"{self.peek.text[:40]!r}, where a text in quotes is due")
        parts = []
        while self.peek.kind == "text":
            parts.append(unquoted(self.take().text))
        return b"".join(parts)

    def number(self, least: int, most: int) -> int:
        sign = -1 if self.took("-") else 1
        token = self.take()
        text = token.text.lower()
        try:
            octal = text.startswith("0") and not text.startswith("0x") and len(text) > 1
            number = sign * int(text, 16 if text.startswith("0x") else 8 if octal else 10)
        except ValueError:
            number = least - 1
        if not least <= number <= most or token.kind != "number":
            raise self.wrong(f"{token.text[:40]!r}, where a number of {least} to {most} is due")
        return number

    def wrong(self, what: str) -> SchemaInvalid:
        """The exception that says so, with the line."""
        return SchemaInvalid(f"line {self._tokens[max(self._at - 1, 0)].line} has {what}")
