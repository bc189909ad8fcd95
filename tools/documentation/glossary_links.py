"""The first time that a page uses a term of the glossary, it becomes a link to the glossary."""

import re
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx

GLOSSARY = "docs/glossary"
LONG_WORD = 8
"""Letters of a term of one word: a shorter one is too often an ordinary word."""


def terms_in(app: Sphinx) -> dict[str, str]:
    """Each term of the tables in lower case -> the anchor of its chapter."""
    found: dict[str, str] = {}
    for row in app.env.get_doctree(GLOSSARY).findall(nodes.row):
        chapter: Any = row.parent
        while not isinstance(chapter, nodes.section):
            chapter = chapter.parent
        for term in row.children[0].astext().partition("(")[0].split(","):
            if " " in term.strip() or len(term.strip()) >= LONG_WORD:
                found.setdefault(term.strip().lower(), chapter["ids"][0])
    return found


def link_terms(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Replace texts of paragraphs and tables; headings, code and links stay as they are."""
    if page in (GLOSSARY, "index"):
        return
    if not hasattr(app, "moldau_terms"):
        app.moldau_terms = terms_in(app)  # type: ignore[attr-defined]
    left: dict[str, str] = dict(app.moldau_terms)  # type: ignore[attr-defined]
    if not left:
        return
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(left, key=len, reverse=True)))})\b", re.IGNORECASE)
    target = app.builder.get_relative_uri(page, GLOSSARY)
    for text in list(tree.findall(nodes.Text)):
        if _is_plain(text):
            _link(text, pattern, left, target)


def _is_plain(text: nodes.Text) -> bool:
    parent: Any = text.parent
    while parent is not None:
        if isinstance(parent, nodes.literal | nodes.literal_block | nodes.reference | nodes.title | nodes.raw):
            return False
        parent = parent.parent
    return True


def _link(text: nodes.Text, pattern: re.Pattern[str], left: dict[str, str], target: str) -> None:
    words, pieces, end = str(text), [], 0
    for match in pattern.finditer(words):
        anchor = left.pop(match[0].lower(), None)
        if anchor is None:
            continue
        pieces.append(nodes.Text(words[end : match.start()]))
        pieces.append(nodes.reference("", match[0], refuri=f"{target}#{anchor}", classes=["glossary-term"]))
        end = match.end()
    if pieces:
        pieces.append(nodes.Text(words[end:]))
        text.parent.replace(text, pieces)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", link_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
