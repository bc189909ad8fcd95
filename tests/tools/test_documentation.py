"""The documentation site: built once, without a warning; what a reader finds there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.error_codes import ErrorCode

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


@pytest.mark.parametrize("page", ["docs/producer", "docs/cluster-operations", "docs/security", "docs/spark"])
def test_a_stranger_finds_it_in_one_click(page: str, site: Path) -> None:
    front = (site / "index.html").read_text()
    assert f'href="{page}.html"' in front[front.index("I want to") :]


def test_the_reference_is_that_of_the_code(site: Path) -> None:
    errors = (site / "reference" / "error-codes.html").read_text()
    assert all(code.name in errors for code in ErrorCode)
    commands = (site / "reference" / "commands.html").read_text()
    assert "moldau topics delete-records" in commands and "--offset-json-file" in commands


def test_a_term_of_ours_links_to_the_glossary_once(site: Path) -> None:
    pattern = re.compile(r'class="glossary-term reference[^"]*" href="[./]*(?:docs/)?glossary.html#([\w-]+)">([^<]+)<')
    glossary, count = (site / "docs" / "glossary.html").read_text(), 0
    for page in site.rglob("*.html"):
        links = pattern.findall(page.read_text())
        assert len({term.lower() for _, term in links}) == len(links), page
        assert all(f'id="{anchor}"' in glossary for anchor, _ in links), page
        count += len(links)
    assert count > 20
