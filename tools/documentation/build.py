"""Builds the documentation site: published files in build/site, without a warning or not at all.

usage: python -m tools.documentation.build [FOLDER]    (`make site`)

The pages are those of docs/ and of the top folder; `pages` says in which chapter each is, `reference` makes more of
them from code. They are laid out in a folder of their own, and Sphinx with MyST makes HTML of them. Nothing is loaded
from the network, neither now nor by a reader.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.documentation.client_api import client_api_page
from tools.documentation.pages import CHAPTERS, FRONT
from tools.documentation.reference import (
    client_settings_page,
    commands_page,
    errors_page,
    metrics_page,
    versions_page,
)

NAMED_BY_FILE = re.compile(r"\[(?:[\w./-]*/)?[\w-]+\.md\]\(([\w./-]+\.md(?:#[\w-]+)?)\)")
"""A link whose text is the file's name: on the site the page's title stands there."""
MADE: dict[str, Callable[[], str]] = {
    "commands": commands_page,
    "client-settings": client_settings_page,
    "client-api": client_api_page,
    "versions": versions_page,
    "metrics": metrics_page,
    "error-codes": errors_page,
}
"""The pages of `reference/`."""
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def lay_out(source: Path) -> None:
    """All that Sphinx reads: pages at the places that their links expect, a front page, pages made from code."""
    shutil.copytree(ROOT / "docs", source / "docs")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, source)
    (source / "reference").mkdir()
    for name, make in MADE.items():
        (source / "reference" / f"{name}.md").write_text(make())
    front = [FRONT]
    for title, names in CHAPTERS.items():
        front.append("\n".join([f"```{{toctree}}\n:hidden:\n:caption: {title}\n", *names, "```\n"]))
    (source / "index.md").write_text("\n".join(front))
    for page in source.rglob("*.md"):
        page.write_text(NAMED_BY_FILE.sub(r"[](\1)", page.read_text()))
    for name in ("conf.py", "glossary_links.py", "long_names.py"):
        shutil.copy(HERE / name, source)
    shutil.copytree(HERE / "assets", source / "assets")


def missing(source: Path) -> list[str]:
    """Pages that are in no chapter."""
    listed = {name.rpartition("<")[2].rstrip(">") for names in CHAPTERS.values() for name in names} | {"index.md"}
    return sorted(
        str(one.relative_to(source)) for one in source.rglob("*.md") if str(one.relative_to(source)) not in listed
    )


def build(target: Path) -> int:
    """Returns Sphinx's exit code; what was in the target is replaced."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"
        lay_out(source)
        if forgotten := missing(source):
            print(f"tools/documentation/pages.py has no chapter for {', '.join(forgotten)}", file=sys.stderr)
            return 1
        made = Path(name) / "site"
        command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
        code = subprocess.run([*command, "-b", "html", source, made, "-d", f"{name}/doctrees"], check=False).returncode
        if code == 0:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(made, target)
    return code


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    code = build(folder)
    if code == 0:
        print(f"{folder / 'index.html'}")
    sys.exit(code)
