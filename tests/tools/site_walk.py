"""Looks at pages of the documentation site in a real Chromium: run by `test_documentation.py` in the environment that
has Playwright. usage: site_walk.py SITE CHROMIUM FOLDER PAGE...

For each page, on a telephone's screen and on a wide one, in the light and in the dark, a line of JSON says how far the
page is wider than its screen, which texts one can hardly tell from their ground, and what the browser complained of;
FOLDER gets the pictures.
"""

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright  # type: ignore[import-not-found]

WIDTHS = {"narrow": 390, "wide": 1280}
CONTRAST_MIN = 3.0
"""Of WCAG 2.1 (AA) for large texts; less is hard to read at any size."""
FAINT = """(least) => {
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const [r, g, b, alpha] = numbers(getComputedStyle(one).backgroundColor);
      if (alpha === undefined || alpha > 0.5) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  for (const element of document.querySelectorAll("article *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest(".headerlink, .copybtn")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(numbers(style.color).slice(0, 3)), luminance(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least) faint.add(`${element.className || element.tagName}: ${contrast.toFixed(1)}`);
  }
  return [...faint];
}"""


def looks(browser: Browser, site: Path, folder: Path, page: str) -> None:
    for scheme in ("light", "dark"):
        for name, width in WIDTHS.items():
            tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            problems: list[str] = []
            tab.on(
                "console", lambda message, said=problems: said.append(message.text) if message.type == "error" else None
            )
            tab.on("pageerror", lambda error, said=problems: said.append(str(error)))
            tab.goto((site / page).as_uri())
            seen: dict[str, Any] = {
                "page": page, "scheme": scheme, "screen": name,
                "wider": tab.evaluate("document.documentElement.scrollWidth - window.innerWidth"),
                "faint": tab.evaluate(FAINT, CONTRAST_MIN),
                "problems": problems,
            }  # fmt: skip
            print(json.dumps(seen), flush=True)
            tab.screenshot(path=folder / f"{page.replace('/', '-').removesuffix('.html')}-{scheme}-{name}.png")
            tab.close()


def main(site: str, chromium: str, folder: str, *pages: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for page in pages:
            looks(browser, Path(site).resolve(), Path(folder), page)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
