"""Each command that a published page shows exists, with the options that it has there: no line of a page is a usage
error. Nothing is run."""

import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from moldau.cli.app import PLACES
from moldau.cli.command_line import Argument, Group, Option, Parameter, check_name, parameters_of, read
from moldau.cli.options import with_command_config
from moldau.errors import MoldauError
from tests.pages import blocks

NOT_OURS = re.compile(r"[A-Z][A-Z0-9_]*|\.\.\.|\{.*\}")
"""Words of a sentence that stand for a command's name."""


@functools.cache
def parameters(name: str, command: str) -> list[Parameter]:
    """Those of a command; `command` is empty where the name is not a group's."""
    place = PLACES[name]
    found: Group | Callable[..., Any] = getattr(importlib.import_module(place.module), place.name)
    function = found.named(command, f"moldau {name}") if isinstance(found, Group) else found
    return [_unchecked(one) for one in with_command_config(parameters_of(function))]


def _unchecked(parameter: Parameter) -> Parameter:
    """Without its callback, which may look for files."""
    about = parameter.about
    if isinstance(about, Option) and about.callback:
        about = Option(*about.names, help=about.help, metavar=about.metavar, min=about.min, max=about.max)
    return parameter._replace(about=about)


def is_group(name: str) -> bool:
    place = PLACES[name]
    return isinstance(getattr(importlib.import_module(place.module), place.name), Group)


def understand(words: Sequence[str]) -> None:
    """Read a command line as the command does. Raises `MoldauError`."""
    if words and words[0] in ("version", "--version", "--help"):
        return
    check_name(words[0] if words else "", PLACES, "moldau")
    group = is_group(words[0])
    read(parameters(words[0], words[1] if group and len(words) > 1 else ""), words[1 + group :])


def recognise(words: Sequence[str]) -> None:
    """The same for a command that a sentence names: arguments, and values of options, may be missing."""
    if not words or NOT_OURS.fullmatch(words[0]) or words[0] in ("version", "--version", "--help"):
        return
    check_name(words[0], PLACES, "moldau")
    rest = list(words[1:])
    if is_group(words[0]):
        if not rest or NOT_OURS.fullmatch(rest[0]):
            return
        known = {name for one in parameters(words[0], rest.pop(0)) for name in one.names}
    else:
        known = {name for one in parameters(words[0], "") for name in one.names}
    for word in rest:
        if word.startswith("-") and len(word) > 1:
            check_name(word.partition("=")[0] if word.startswith("--") else word[:2], {*known, "--help"}, words[0])


def wrong(page: str) -> list[str]:
    """A sentence for each command of the page that would be refused."""
    found = []
    for place, words in blocks.moldau_commands(page):
        try:
            if any("$" in word for word in words):  # a shell puts values there
                recognise(words)
            else:
                understand(words)
        except MoldauError as refused:
            found.append(f"{place}: moldau {' '.join(words)}: {refused}")
    for words in blocks.mentioned(page):
        try:
            recognise(words)
        except MoldauError as refused:
            found.append(f"{page}: `moldau {' '.join(words)}`: {refused}")
    return found


@pytest.mark.parametrize("page", [page for page in blocks.pages() if page != "CHANGELOG.md"])
def test_each_command_of_a_page_exists_with_its_options(page: str) -> None:
    assert wrong(page) == []


def test_a_command_that_does_not_exist_is_noticed() -> None:
    for line in ("topic list", "topics list --all", "server start --sett x=y", "consume", "groups reset orders"):
        with pytest.raises(MoldauError):
            understand(line.split())
    for line in ("topic list", "topics list --all", "server start --sett", "groups reset"):
        with pytest.raises(MoldauError):
            recognise(line.split())
    recognise(["topics", "alter"])
    recognise(["consume"])
    assert any(isinstance(one.about, Argument) for one in parameters("consume", ""))
