"""The first time that a page uses a term of the glossary, it becomes a link to the term's line there.

A term that is also an ordinary word (a load, a window) is linked only on the pages that `MEANT` names.
"""

import re
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx

GLOSSARY = "docs/glossary"
ORDINARY = frozenset({"chain", "dispatch", "image", "load", "mirror", "tier", "turn", "window", "world"})
"""Terms that are ordinary words on most pages."""
MEANT = {
    "ARCHITECTURE": {"chain", "image", "load", "turn"},
    "CONTRIBUTING": {"turn", "world"},
    "docs/audit": {"load", "mirror", "tier", "window"},
    "docs/concepts": {"load", "mirror"},
    "docs/console": {"mirror"},
    "docs/exactly-once-loads": {"load"},
    "docs/iceberg": {"load"},
    "docs/mirror": {"mirror"},
    "docs/mirror-foreign": {"mirror"},
    "docs/performance-design": {"dispatch", "image", "turn"},
    "docs/removed-rows": {"load"},
    "docs/streams": {"window"},
    "docs/upsert": {"load"},
    "docs/warehouse": {"load"},
}
"""The pages on which the first use of an ordinary word is the glossary's term."""


def mark_terms(app: Sphinx, tree: nodes.document) -> None:
    """Give each line of the glossary's tables an anchor, for its first term."""
    if app.env.docname != GLOSSARY:
        return
    for row in tree.findall(nodes.row):
        cell = row.children[0]
        if cell.astext() != "term":
            cell["ids"].append(anchor_of(terms_of(cell.astext())[0]))


def terms_of(cell: str) -> list[str]:
    """The terms of a line: those before the parentheses, in lower case."""
    return [term.strip().lower() for term in cell.partition("(")[0].split(",")]


def anchor_of(term: str) -> str:
    return f"term-{re.sub(r'[^a-z0-9]+', '-', term)}"


def terms_in(app: Sphinx) -> dict[str, str]:
    """Each term of the glossary -> its anchor."""
    found: dict[str, str] = {}
    for row in app.env.get_doctree(GLOSSARY).findall(nodes.row):
        terms = terms_of(row.children[0].astext())
        if terms != ["term"]:
            for term in terms:
                found.setdefault(term, anchor_of(terms[0]))
    return found


def linked_on(page: str, terms: dict[str, str]) -> dict[str, str]:
    """Those of the terms that become links on that page."""
    left_out = ORDINARY - MEANT.get(page, set())
    return {term: anchor for term, anchor in terms.items() if term not in left_out}


def link_terms(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Replace texts of paragraphs and tables; headings, code and links stay as they are."""
    if page in (GLOSSARY, "index"):
        return
    if not hasattr(app, "moldau_terms"):
        app.moldau_terms = terms_in(app)  # type: ignore[attr-defined]
    left = linked_on(page, app.moldau_terms)  # type: ignore[attr-defined]
    words = "|".join(re.escape(term).replace(r"\ ", r"\s") for term in sorted(left, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])({words})(?:s|es)?(?![\w-])", re.IGNORECASE)
    target = app.builder.get_relative_uri(page, GLOSSARY)
    _join_lines(tree)
    for text in list(tree.findall(nodes.Text)):
        if _is_plain(text):
            _link(text, pattern, left, target)


def _join_lines(tree: nodes.document) -> None:
    """Make one text of the lines of each paragraph: a term may stand in two of them."""
    for element in list(tree.findall(nodes.TextElement)):
        joined: list[Any] = []
        for child in element.children:
            if isinstance(child, nodes.Text) and joined and isinstance(joined[-1], nodes.Text):
                joined[-1] = nodes.Text(joined[-1] + child)
            else:
                joined.append(child)
        if len(joined) < len(element.children):
            element.children = []
            element.extend(joined)


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
        anchor = left.get(" ".join(match[1].lower().split()))
        if anchor is None:
            continue
        for term in [term for term, of in left.items() if of == anchor]:
            del left[term]
        pieces.append(nodes.Text(words[end : match.start()]))
        pieces.append(nodes.reference("", match[0], refuri=f"{target}#{anchor}", classes=["glossary-term"]))
        end = match.end()
    if pieces:
        pieces.append(nodes.Text(words[end:]))
        text.parent.replace(text, pieces)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", mark_terms)
    app.connect("doctree-resolved", link_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
