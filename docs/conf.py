"""Sphinx configuration: `make docs`. Warnings are errors, so a broken link or a missing page stops the build."""

from pathlib import Path

import dpmedian

project = "dpmedian"
copyright = "the dpmedian authors"
release = version = dpmedian.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "The differentially private geometric median", "page_width": "1000px"}
myst_heading_anchors = 3

# Docstrings mark code with single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": False}

ROOT = Path(__file__).parents[1]


def _include_proofs(app, docname, source):
    """The page of proofs includes every Markdown file that lies beside the code, so none can be forgotten or copied."""
    if docname == "proofs":
        for proof in sorted((ROOT / "python" / "dpmedian").rglob("*.md")):
            path = f"../{proof.relative_to(ROOT).as_posix()}"
            source[0] += f"\n\n```{{include}} {path}\n:heading-offset: 1\n```\n"


def setup(app):
    app.connect("source-read", _include_proofs)
