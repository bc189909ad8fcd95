"""Where names may be broken into lines: long ones behind a point, an underscore or a slash and before a capital, short
ones in code nowhere.

A browser would break `--set` behind its dashes, and not break `group.initial.rebalance.delay.ms` in a narrow table.
"""

import re
from typing import Any

from sphinx.application import Sphinx

LONG = 16
WORD_OF_CODE = re.compile(r'<span class="pre">([^<]+)</span>')
CELL = re.compile(r"<t[dh]\b.*?</t[dh]>", re.DOTALL)
TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")
WORD_OF_TEXT = re.compile(rf"[^\s&;]{{{LONG},}}")
BREAK = re.compile(r"(?<=[._/,:=])(?=\w)|(?<=[a-z])(?=[A-Z])")


def broken(body: str) -> str:
    """The HTML of a page with the places at which its names may be broken; what is copied from it stays the same."""
    return CELL.sub(_of_cell, WORD_OF_CODE.sub(_of_code, body))


def _of_code(found: re.Match[str]) -> str:
    if len(found[1]) < LONG:
        return found[0]
    return f'<span class="pre long">{BREAK.sub("<wbr>", found[1])}</span>'


def _of_cell(found: re.Match[str]) -> str:
    """Long words of its texts, too."""
    return TEXT.sub(lambda text: WORD_OF_TEXT.sub(lambda word: BREAK.sub("<wbr>", word[0]), text[0]), found[0])


def break_names(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """An event of Sphinx: a page is about to be written."""
    if "body" in context:
        context["body"] = broken(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", break_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
