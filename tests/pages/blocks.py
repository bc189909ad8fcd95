"""The code blocks of the published pages, and the commands in them.

A block that no test runs has a comment with the reason in the line before it: `<!-- not run: REASON -->`. Readers of
the page do not see it.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools.documentation.pages import CHAPTERS

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>[^\n]*?) -->\n)?"
    r"^(?P<indent> *)```(?P<kind>[\w-]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"^ *<!-- not run:", re.MULTILINE)
COMMAND = re.compile(r"`(?:\$ )?(moldau [^`\n]+)`")
PROMPT = "$ "


class Block(NamedTuple):
    """A block of code: the page, the line of its fence, the word behind the fence, and why it is not run, if so."""

    page: str
    line: int
    kind: str
    code: str
    reason: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """The published pages that are files of this project; the others are made from code."""
    listed = [name.rpartition("<")[2].rstrip(">") for names in CHAPTERS.values() for name in names]
    return [name for name in listed if not name.startswith("reference/")]


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text()


@cache
def blocks_of(page: str) -> tuple[Block, ...]:
    """All blocks of a page, in order, also those that are indented below a list."""
    text, found = text_of(page), []
    for match in FENCE.finditer(text):
        indent = match["indent"]
        code = "".join(line.removeprefix(indent) for line in match["code"].splitlines(keepends=True))
        fence = text.index("```", match.start())
        found.append(Block(page, text.count("\n", 0, fence) + 1, match["kind"], code, match["reason"] or ""))
    return tuple(found)


def marks_of(page: str) -> int:
    """How many reasons the page has: one that stands before no block would exempt nothing."""
    return len(MARK.findall(text_of(page)))


def commands_in(code: str) -> list[str]:
    """The command lines of a block: those behind a prompt if there is one, else those that begin with `moldau `."""
    lines = code.replace("\\\n", " ").splitlines()
    prompted = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    return prompted or [line for line in lines if line.startswith("moldau ")]


def words_of(command: str) -> list[str]:
    """The words of the first program of a command line, without its comment, redirections and what follows a pipe."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&<>;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in lexer:
        if word in ("|", "&", "<", ">", ">>", "&&", ";", "2>") or word.startswith("#"):
            break
        words.append(word)
    return words


def moldau_commands(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each command line of `moldau` in a block of the page, with its place."""
    for block in blocks_of(page):
        for command in commands_in(block.code):
            for part in re.split(r" \| |&& ", command):
                if part.strip().startswith("moldau "):
                    yield block.place, words_of(part.strip())[1:]


def mentioned(page: str) -> Iterator[list[str]]:
    """The words of each command of `moldau` that a sentence or a table names."""
    for command in COMMAND.findall(FENCE.sub("", text_of(page))):
        try:
            yield words_of(command.replace("\\|", "|"))[1:]
        except ValueError:  # a quotation mark without its end: a part of a command
            yield command.split()[1:]
