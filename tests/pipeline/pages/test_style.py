"""The style sheet: text and marks stand out from what is behind them, in light and dark."""

import re

import pytest

from moldau.pipeline.pages import parts
from moldau.pipeline.pages.style import DARK, LIGHT, STYLE

TEXT = [
    (text, behind)
    for text, surfaces in {
        "ink": ("paper", "card", "code"),
        "soft": ("paper", "card"),
        "c1": ("paper", "card"),
        "good": ("wash",),
        "bad": ("alarm", "card"),
    }.items()
    for behind in surfaces
]
MARKS = [(colour, "card") for colour in ("c1", "c2", "c3", "c4", "good", "bad", "edge")]


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_marks_have_the_contrast_of_wcag_aa(palette: str) -> None:
    colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6});", palette))
    faint = [pair for pair in TEXT if contrast(*(colours[name] for name in pair)) < 4.5]
    faint += [pair for pair in MARKS if contrast(*(colours[name] for name in pair)) < 3]
    assert not faint


def test_the_contrast_of_black_and_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_a_wide_table_shows_that_it_goes_on_and_the_keyboard_reaches_it() -> None:
    """The shadows stay at the edges of the region, and covers that move with the table hide them at its ends."""
    (rule,) = re.findall(r"\.scroll \{ overflow-x: auto;[^}]*\}", STYLE)
    assert re.findall(r"var\(--(\w+)\)[^,]*, transparent\) [^;,]* (local|scroll)", rule) == [
        ("card", "local"), ("card", "local"), ("edge", "scroll"), ("edge", "scroll"),
    ]  # fmt: skip
    assert ".scroll:focus-visible { outline:" in STYLE
    region = '<div class="scroll" tabindex="0" role="region" aria-label="Tiers &amp; more">'
    assert region in parts.table("Tiers & more", ["Tier"], [["origin"]])
