"""Small drawings of figures for a page of the docs, as SVG text: bars with the targets marked, lines over a logarithmic
scale. Nothing is measured here.
"""

import html
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN = 420, 220, 36
LABEL = 20
"""How high a number is, with the space around it."""
INK = "#1f2937"
COLOURS = ("#2563eb", "#d97706", "#059669")
STYLE = "font-family='system-ui,sans-serif' font-size='12'"


class Bars(NamedTuple):
    """One bar for each name, and a line across it where its target is."""

    title: str
    values: Mapping[str, float]
    targets: Mapping[str, float]

    def svg(self) -> str:
        top = max(1.0, *self.values.values())
        step = (WIDTH - 2 * MARGIN) / max(len(self.values), 1)
        parts = []
        for at, (name, value) in enumerate(self.values.items()):
            left, height = MARGIN + at * step + step * 0.2, _height(value / top)
            middle, width, foot = left + step * 0.3, step * 0.6, HEIGHT - MARGIN
            parts.append(_box(left, foot - height, width, height))
            inside = height >= LABEL  # white on the bar, else dark above it
            y, colour = (foot - 8, "#ffffff") if inside else (foot - height - 4, INK)
            parts.append(_text(middle, y, f"{value:.2f}", colour) + _text(middle, foot + 16, name))
            if name in self.targets:
                y = foot - _height(self.targets[name] / top)
                parts.append(
                    f"<path d='M{left - 6:.1f} {y:.1f}h{width + 12:.1f}' stroke='#b91c1c' stroke-dasharray='4 3'/>"
                )
        return _text(WIDTH / 2, 18, self.title) + "".join(parts)


class Lines(NamedTuple):
    """One line a name over numbers that grow by factors."""

    title: str
    series: Mapping[str, Mapping[int, float]]

    def svg(self) -> str:
        numbers = sorted({number for values in self.series.values() for number in values})
        top = max(value for values in self.series.values() for value in values.values()) * 1.2
        span = math.log10(numbers[-1] / numbers[0]) or 1.0

        def x(number: int) -> float:
            return MARGIN + 20 + (WIDTH - 2 * MARGIN - 60) * math.log10(number / numbers[0]) / span

        parts = [_text(x(number), HEIGHT - MARGIN + 16, f"{number:,}") for number in numbers]
        for colour, (name, values) in zip(COLOURS, self.series.items(), strict=False):
            points = [(x(number), HEIGHT - MARGIN - _height(value / top)) for number, value in sorted(values.items())]
            line = " ".join(f"{left:.1f},{y:.1f}" for left, y in points)
            parts.append(f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='2'/>")
            for (left, y), value in zip(points, values.values(), strict=True):
                parts.append(_text(left, y - 6, f"{value:.1f}"))
            parts.append(_text(points[-1][0] + 30, points[-1][1] + 4, name))
        return _text(WIDTH / 2, 18, self.title) + "".join(parts)


def page(drawings: Sequence[Bars | Lines]) -> str:
    """All drawings beneath each other, on white, so that they are read in the dark too."""
    parts = [f"<g transform='translate(0 {at * HEIGHT})'>{each.svg()}</g>" for at, each in enumerate(drawings)]
    height = HEIGHT * len(drawings)
    size = f"width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}'"
    ground = f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} {STYLE}>{ground}{''.join(parts)}</svg>\n"


def _height(share: float) -> float:
    return share * (HEIGHT - 2 * MARGIN - 16)


def _box(left: float, top: float, width: float, height: float) -> str:
    return f"<rect x='{left:.1f}' y='{top:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{COLOURS[0]}' rx='3'/>"


def _text(x: float, y: float, text: str, colour: str = INK) -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='middle' fill='{colour}'>{html.escape(text)}</text>"
