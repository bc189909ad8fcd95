"""Charts as SVG text: lines, areas over time, horizontal bars, strips of cells. Each has a wide and a narrow form.

Text in an SVG shrinks with it, so one drawing cannot serve a phone and a desk: the page shows the one that fits.
Colours are the page's CSS variables, so a chart follows light and dark; a chart is one image with a title and a
description for screen readers.
"""

import html
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

WIDE, NARROW = 1000, 360
COLOURS = ("var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)")
LETTER_WIDTH = 7.3


class Bar(NamedTuple):
    """One bar: its name, its length, and what is written at its end."""

    name: str
    value: float
    note: str


def lines(title: str, description: str, series: Mapping[str, Sequence[float]], labels: Sequence[str], unit: str) -> str:
    """One line for each series over the same labelled positions."""
    top = nice_ceiling(max((value for values in series.values() for value in values), default=1))

    def draw(width: int) -> str:
        frame = _Frame(width, 320 if width == WIDE else 260, top)
        every = max(1, -(-len(labels) // (12 if width == WIDE else 6)))
        drawn = [frame.grid(unit), frame.ticks(labels, every)]
        for colour, values in zip(itertools.cycle(COLOURS), series.values(), strict=False):
            drawn.append(f'<polyline class="line" points="{frame.points(values)}" style="stroke:{colour}"/>')
        return frame.svg(title, description, drawn)

    return _both(draw) + legend(dict(zip(series, itertools.cycle(COLOURS), strict=False)))


def areas(
    title: str, description: str, series: Mapping[str, Sequence[float]], marks: Mapping[int, str], unit: str
) -> str:
    """One filled line for each series; `marks` are the positions that get a label beneath."""
    top = nice_ceiling(max((value for values in series.values() for value in values), default=1))
    coloured = list(zip(itertools.cycle(COLOURS), series.values(), strict=False))

    def draw(width: int) -> str:
        frame = _Frame(width, 240 if width == WIDE else 200, top)
        count = max((len(values) for values in series.values()), default=0)
        step = 1 if width == WIDE else 3
        drawn = [frame.grid(unit)]
        for colour, values in coloured:
            points = frame.points(values)
            left, right = f"{frame.x(0, count):.1f},{frame.y(0)}", f"{frame.x(count - 1, count):.1f},{frame.y(0)}"
            drawn.append(f'<polygon class="area" points="{left} {points} {right}" style="fill:{colour}"/>')
            drawn.append(f'<polyline class="line thin" points="{points}" style="stroke:{colour}"/>')
        drawn += [frame.label(name, frame.x(at, count)) for at, name in list(marks.items())[::step]]
        return frame.svg(title, description, drawn)

    named = zip(series, itertools.cycle(COLOURS), strict=False)
    return _both(draw) + (legend(dict(named)) if len(series) > 1 else "")


def bars(title: str, description: str, rows: Sequence[Bar], colour: str = COLOURS[0]) -> str:
    """Horizontal bars with the name before (wide) or above (narrow) and the note behind."""
    longest = max((abs(row.value) for row in rows), default=1) or 1
    name_width = max((len(row.name) for row in rows), default=0) * LETTER_WIDTH + 14
    note_width = max((len(row.note) for row in rows), default=0) * LETTER_WIDTH + 12

    def draw(width: int) -> str:
        beside = width == WIDE
        step, left, thick = (30, name_width, 18) if beside else (44, 0, 14)
        room = width - left - note_width
        parts = []
        for at, row in enumerate(rows):
            y = at * step + 4
            bar_y = y if beside else y + 18
            length = max(2.0, abs(row.value) / longest * room)
            anchor, x, text_y = ("end", left - 10, y + 13.5) if beside else ("start", 0, y + 11)
            parts.append(
                f'<text class="name" text-anchor="{anchor}" x="{x:.1f}" y="{text_y}">{html.escape(row.name)}</text>'
                f'<rect x="{left:.1f}" y="{bar_y}" width="{length:.1f}" height="{thick}" rx="3" style="fill:{colour}"/>'
                f'<text class="note" x="{left + length + 8:.1f}" y="{bar_y + thick * 0.76:.1f}">'
                f"{html.escape(row.note)}</text>"
            )
        return _svg(width, len(rows) * step + 4, title, description, parts)

    return _both(draw)


def strips(title: str, description: str, rows: Mapping[str, Sequence[str]], ends: tuple[str, str]) -> str:
    """A strip of coloured cells for each row, all over the same positions, with the names of the first and last one."""

    def draw(width: int) -> str:
        parts, step = [], 46
        for at, (name, colours) in enumerate(rows.items()):
            y = at * step
            parts.append(f'<text class="name" x="0" y="{y + 12}">{html.escape(name)}</text>')
            cell = width / max(1, len(colours))
            gap = min(2.0, cell / 5)
            for number, colour in enumerate(colours):
                place = f'x="{number * cell:.1f}" y="{y + 18}" width="{cell - gap:.1f}" height="18"'
                parts.append(f'<rect {place} style="fill:{colour}"/>')
        y = len(rows) * step + 8
        parts.append(f'<text x="0" y="{y}">{html.escape(ends[0])}</text>')
        parts.append(f'<text class="right" x="{width}" y="{y}">{html.escape(ends[1])}</text>')
        return _svg(width, len(rows) * step + 14, title, description, parts)

    return _both(draw)


def legend(colours: Mapping[str, str]) -> str:
    """The colour of each name."""
    marks = "".join(
        f'<li><span class="key" style="background:{colour}"></span>{html.escape(name)}</li>'
        for name, colour in colours.items()
    )
    return f'<ul class="legend">{marks}</ul>'


def nice_ceiling(value: float) -> float:
    """A round number not below the value, such that a quarter of it is round enough for a grid line."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(power * step for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if power * step >= value)


class _Frame:
    """The plotting area of a chart with axes; the vertical one goes from 0 to `top`."""

    def __init__(self, width: int, height: int, top: float):
        self.width, self.height = width, height
        self._grid = [(top * part / 4, f"{top * part / 4:,.10g}") for part in range(5)]
        self._left = 12 + max(4, *(len(text) for _, text in self._grid)) * LETTER_WIDTH
        self._right, self._top, self._bottom = width - 14, 26, height - 30
        self._highest = top

    def x(self, at: int, count: int) -> float:
        return self._left + (self._right - self._left) * at / max(1, count - 1)

    def y(self, value: float) -> float:
        return self._bottom - (self._bottom - self._top) * value / self._highest

    def points(self, values: Sequence[float]) -> str:
        return " ".join(f"{self.x(at, len(values)):.1f},{self.y(value):.1f}" for at, value in enumerate(values))

    def grid(self, unit: str) -> str:
        parts = [f'<text class="unit" x="0" y="12">{html.escape(unit)}</text>']
        for value, text in self._grid:
            y = self.y(value)
            parts.append(f'<line class="grid" x1="{self._left:.1f}" x2="{self._right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="tick right" x="{self._left - 8:.1f}" y="{y + 4:.1f}">{text}</text>')
        return "".join(parts)

    def ticks(self, labels: Sequence[str], every: int) -> str:
        return "".join(self.label(label, self.x(at, len(labels))) for at, label in enumerate(labels) if at % every == 0)

    def label(self, text: str, x: float) -> str:
        """Text beneath a position: centred, or from the left edge on where it would be cut off."""
        centred = x >= len(text) * LETTER_WIDTH / 2
        place = f'class="tick" x="{x:.1f}"' if centred else 'x="0"'
        return f'<text {place} y="{self.height - 9}">{html.escape(text)}</text>'

    def svg(self, title: str, description: str, parts: Sequence[str]) -> str:
        return _svg(self.width, self.height, title, description, parts)


def _svg(width: int, height: int, title: str, description: str, parts: Sequence[str]) -> str:
    kind = "wide" if width == WIDE else "narrow"
    said = html.escape(f"{title}. {description}", quote=True)
    return f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{said}">{"".join(parts)}</svg>'


def _both(draw: Callable[[int], str]) -> str:
    return draw(WIDE) + draw(NARROW)
