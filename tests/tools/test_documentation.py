"""The documentation site: built once, without a warning; what a reader finds there."""

import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from moldau.cli.app import PLACES
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.config import SETTINGS, TOPIC_SETTINGS
from moldau.error_codes import ErrorCode
from moldau.protocol.apis import SUPPORTED
from tests.environments import program, python_with
from tests.versions import PLAYWRIGHT
from tools.documentation.glossary_links import MEANT, ORDINARY, anchor_of, linked_on, terms_of

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""(?:src|srcset)=["'](?:https?:)?//|<link[^>]+rel="stylesheet"[^>]+href="(?:https?:)?//""")

pytestmark = [pytest.mark.check, pytest.mark.together("site")]  # Sphinx takes 10 s


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "made"
    command = [sys.executable, "-m", "tools.documentation.build", folder]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", f"{folder / 'index.html'}\n")
    return folder


def test_every_page_is_on_the_site_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")}
    assert not [page for page in pages if not (site / page.relative_to(ROOT)).with_suffix(".html").exists()]
    assert not [page.name for page in site.rglob("*.html") if LOADED.search(page.read_text())]


class Links(HTMLParser):
    """Where the links of a page lead, the anchors that it has, and the pictures that it shows."""

    def __init__(self, text: str):
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.targets += [target for name in ("href", "src") if (target := given.get(name))]
        self.anchors |= {anchor for name in ("id", "name") if (anchor := given.get(name))}


@pytest.fixture(scope="module")
def links(site: Path) -> dict[Path, Links]:
    return {page: Links(page.read_text()) for page in site.rglob("*.html")}


def inner(page: Path, links: Links) -> Iterator[tuple[Path, str]]:
    """The files of the site, and the places in them, to which a page leads."""
    for target in links.targets:
        parts = urlsplit(target)
        if not parts.scheme and not parts.netloc:
            yield (page.parent / unquote(parts.path)).resolve() if parts.path else page, unquote(parts.fragment)


def test_no_link_is_broken(links: dict[Path, Links], site: Path) -> None:
    """Neither its file nor its place in it is missing; nor does one lead to a file of ours that is not on the site."""
    broken = []
    for page, found in links.items():
        for file, place in inner(page, found):
            known = links[file].anchors if file in links else {""}
            if not file.is_file() or (file.suffix == ".html" and place and place not in known | {"top"}):
                broken.append(f"{page.relative_to(site)}: {file}#{place}")
    assert broken == []


def test_each_page_is_reached_from_the_front_page(links: dict[Path, Links], site: Path) -> None:
    """By links in texts and by the list of pages."""
    front = site / "index.html"
    reached, left = {front}, deque([front])
    while left:
        page = left.popleft()
        for file, _ in inner(page, links[page]):
            if file in links and file not in reached:
                reached.add(file)
                left.append(file)
    made_by_sphinx = {site / name for name in ("genindex.html", "search.html")}
    assert {*links} - reached - made_by_sphinx == set()


@pytest.mark.parametrize(
    "page", ["docs/producer", "docs/consumer", "docs/cluster-operations", "docs/security", "docs/spark", "docs/limits"]
)
def test_a_stranger_finds_it_in_one_click(page: str, site: Path) -> None:
    front = (site / "index.html").read_text()
    assert f'href="{page}.html"' in front[front.index("I want to") :]


def without_breaks(page: Path) -> str:
    """The page without the places at which its long names may be broken."""
    return page.read_text().replace("<wbr>", "")


def test_the_reference_is_that_of_the_code(site: Path) -> None:
    made = {page.stem: without_breaks(page) for page in (site / "reference").glob("*.html")}
    assert all(code.name in made["error-codes"] for code in ErrorCode)
    assert all(f"moldau {name}" in made["commands"] for name in PLACES)
    assert "moldau topics delete-records" in made["commands"] and "--offset-json-file" in made["commands"]
    assert all(f">{api.name}<" in made["versions"] for api in SUPPORTED.values())
    api = made["client-api"]
    assert all(name in api for name in ("Producer.send", "Consumer.subscribe", "Admin.create_topic", "read_table"))
    fields = ConsumerSettings.__dataclass_fields__
    shown = {name for name, of in fields.items() if not of.metadata.get("internal", True)}
    assert {name for name in shown if f">{name}<" not in made["client-settings"]} == set()
    names = [line.split()[0] for line in (ROOT / "tests" / "metrics" / "names.txt").read_text().splitlines()]
    assert [name for name in names if name not in made["metrics"]] == []
    settings = without_breaks(site / "docs" / "settings.html")
    assert all(name in settings for name in {*SETTINGS, *TOPIC_SETTINGS})


def test_a_term_of_ours_links_to_its_line_of_the_glossary_once(links: dict[Path, Links], site: Path) -> None:
    pattern = re.compile(r'class="glossary-term reference[^"]*" href="[./]*(?:docs/)?glossary.html#([\w-]+)">([^<]+)<')
    linked = set()
    for page in links:
        found = pattern.findall(page.read_text())
        assert len({anchor for anchor, _ in found}) == len(found), page
        assert {anchor for anchor, _ in found} <= links[site / "docs" / "glossary.html"].anchors
        linked |= {anchor for anchor, _ in found}
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| `", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    lines = [terms_of(row) for row in rows]
    assert {*ORDINARY} <= {term for line in lines for term in line}
    assert {anchor_of(line[0]) for line in lines} == linked, "lines that no page needs"


class Prose(HTMLParser):
    """The texts of a page's article, without its headings, code and links."""

    LEFT_OUT = frozenset({"a", "code", "pre", "h1", "h2", "h3", "h4", "script", "style"})

    def __init__(self, text: str):
        super().__init__()
        self.texts: list[str] = []
        self.articles = self.left_out = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.articles += tag == "article"
        self.left_out += tag in self.LEFT_OUT

    def handle_endtag(self, tag: str) -> None:
        self.articles -= tag == "article"
        self.left_out -= tag in self.LEFT_OUT

    def handle_data(self, data: str) -> None:
        if self.articles and not self.left_out:
            self.texts.append(" ".join(data.split()))


def test_each_page_that_uses_a_term_of_ours_links_to_the_glossary(links: dict[Path, Links], site: Path) -> None:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| `", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    terms = {term: anchor_of(terms_of(row)[0]) for row in reversed(rows) for term in terms_of(row)}
    missing, used = [], set[tuple[str, str]]()
    for page, found in links.items():
        name = str(page.relative_to(site)).removesuffix(".html")
        if name in ("docs/glossary", "index", "search", "genindex"):
            continue
        texts = Prose(without_breaks(page)).texts
        for term, anchor in linked_on(name, terms).items():
            pattern = re.compile(rf"(?<![\w-]){re.escape(term)}(?:s|es)?(?![\w-])", re.IGNORECASE)
            links_to_it = any(target.endswith(f"glossary.html#{anchor}") for target in found.targets)
            if links_to_it:
                used.add((name, term))
            elif any(map(pattern.search, texts)):
                missing.append((name, term))
    assert missing == []
    assert {(name, term) for name, meant in MEANT.items() for term in meant} <= used
    assert {term for meant in MEANT.values() for term in meant} == ORDINARY


def test_its_own_styles_are_there(site: Path) -> None:
    assert "site.css" in (site / "index.html").read_text() and (site / "_static" / "site.css").exists()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_each_page_fits_a_telephone_and_can_be_read_in_the_dark(site: Path, tmp_path: Path) -> None:
    """`MOLDAU_SCREENSHOTS=FOLDER` keeps the pictures."""
    folder = Path(os.environ.get("MOLDAU_SCREENSHOTS") or tmp_path)
    chromium = program("chromium-headless-shell", "chromium-headless-shell")
    pages = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    command = [python_with(PLAYWRIGHT), Path(__file__).with_name("site_walk.py"), site, chromium, folder, *pages]
    walked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert walked.returncode == 0, walked.stderr
    seen = [json.loads(line) for line in walked.stdout.splitlines()]
    assert len(seen) == 4 * len(pages)
    assert [one for one in seen if one["wider"] > 0 or one["faint"] or one["problems"]] == []
