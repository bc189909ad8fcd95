"""Sphinx's settings for the site; it is read from the folder that build.py lays out."""

import sys
from pathlib import Path

from moldau import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "Moldau"
release = version = __version__
extensions = ["myst_parser", "glossary_links", "long_names"]
html_theme = "furo"
html_title = f"Moldau {__version__}"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 4
myst_links_external_new_tab = False
pygments_style, pygments_dark_style = "default", "monokai"
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
"""Examples may have `...`; the pages of the top folder begin where they like."""
