"""The parts of a page as HTML text: the page, its opening, sections, tables, code to copy.

A parameter named `body`, `head` or `foot` is HTML; all other text is escaped here. A page needs no script and nothing
from a network. A table scrolls sideways in a region of its own, which the keyboard reaches, with its caption as the
region's name; a shadow shows that it goes on.
"""

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from moldau.pipeline.pages.style import STYLE

FAULTS_SHOWN = 20
DIFFERENT = "≠"
"""The end of a cell that is shown as a fault."""


class Figure(NamedTuple):
    """One of the large numbers at the top: its name, its value, and what the value is of."""

    name: str
    value: str
    note: str


def page(title: str, head: str, sections: Iterable[str], foot: str) -> str:
    """The whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<header>{head}</header><main>{''.join(sections)}</main><footer>{foot}</footer></body></html>\n"
    )


def opening(kicker: str, title: str, lead: str, verdict: str, figures: Iterable[Figure]) -> str:
    """The top of a page; `verdict` is what `verdict` returns."""
    tiles = "".join(
        f"<div><dt>{html.escape(figure.name)}</dt><dd>{html.escape(figure.value)}"
        f"<small>{html.escape(figure.note)}</small></dd></div>"
        for figure in figures
    )
    return (
        f'<p class="kicker">{html.escape(kicker)}</p><h1>{html.escape(title)}</h1>'
        f'<p class="lead">{html.escape(lead)}</p>{verdict}<dl class="figures">{tiles}</dl>'
    )


def verdict(good: str, bad: str, faults: Sequence[str]) -> str:
    """The sentence `good`, or `bad` with the first faults."""
    if not faults:
        return f'<div class="verdict good">{html.escape(good)}</div>'
    more = len(faults) - FAULTS_SHOWN
    shown = [*faults[:FAULTS_SHOWN], *([f"and {more:,} more"] if more > 0 else [])]
    return f'<div class="verdict bad" role="alert">{html.escape(bad)}{items(shown)}</div>'


def links(places: Iterable[tuple[str, str]]) -> str:
    """A line of links: where each leads (a section's `place`, or a page beside this one) and its text."""
    listed = "".join(f'<li><a href="{html.escape(to)}">{html.escape(text)}</a></li>' for to, text in places)
    return f'<nav aria-label="On this page"><ul>{listed}</ul></nav>'


def section(title: str, text: str, body: str, place: str = "") -> str:
    """A card of the page; `place` is its name for links."""
    at = f' id="{html.escape(place)}"' if place else ""
    return f"<section{at}><h2>{html.escape(title)}</h2>{paragraph(text)}{body}</section>"


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def heading(text: str) -> str:
    return f"<h3>{html.escape(text)}</h3>"


def items(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>"


def folded(summary: str, body: str) -> str:
    """What opens on a click, and in print."""
    return f"<details><summary>{html.escape(summary)}</summary>{body}</details>"


def code(text: str) -> str:
    """Text to copy: one click selects all of it."""
    return f"<pre><code>{html.escape(text)}</code></pre>"


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], *, of_text: bool = False) -> str:
    """A table whose first column names the rows. Cells stand to the right, or to the left if they hold text."""
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in heads)
    body = "".join(_row(row) for row in rows)
    kind = ' class="text"' if of_text else ""
    name = html.escape(caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table{kind}><caption>{name}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[Any]) -> str:
    first, *others = (str(cell) for cell in row)
    cells = "".join(
        f'<td class="off">{html.escape(cell)}</td>' if cell.endswith(DIFFERENT) else f"<td>{html.escape(cell)}</td>"
        for cell in others
    )
    return f'<tr><th scope="row">{html.escape(first)}</th>{cells}</tr>'
