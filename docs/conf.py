"""Sphinx configuration: `make docs`. Warnings are errors, so a broken link or a missing page stops the build.

Nothing here needs the network: fonts and scripts come with the theme, formulas are drawn by the browser.
"""

import re
import sys
import warnings
from pathlib import Path

import dpmedian

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent / "_sphinx"))

project = "dpmedian"
copyright = "the dpmedian authors"
release = version = dpmedian.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",  # the sections of numpydoc docstrings as lists
    "sphinx_copybutton",
    "sphinx_design",  # cards and columns
    "sphinx_gallery.gen_gallery",
    "formulas",
    "proofs",
]
exclude_patterns = ["_build", "tables"]
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# Docstrings mark code with single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings describe types in words
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_use_rtype = napoleon_use_param = False  # types are words here, and not names to link
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes are described in the docstring of their class
python_maximum_signature_line_length = 80

html_theme = "pydata_sphinx_theme"
html_title = f"dpmedian {release}"
html_static_path = ["_static"]
html_css_files = ["dpmedian.css"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_sidebars = {"index": [], "tutorial": [], "benchmarks": []}  # pages that have no neighbors in a section
html_theme_options = {
    "logo": {"text": html_title},
    "github_url": "https://github.com/dpmedian/dpmedian",
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "benchmarks": []},
    "show_nav_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Copying a block copies only what a reader types, without prompts and outputs.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_exclude = ".linenos, .go"
copybutton_selector = ":not(.highlight-text) > div.highlight > pre"


# An example belongs to the gallery if its docstring begins with an underlined title.
_UNTITLED = [
    path.name for path in sorted((ROOT / "examples").glob("*.py")) if "\n====" not in path.read_text("utf-8")[:200]
]
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"^(?!.*flower_simulation).*\.py$",  # which needs Ray, and shows the picture that it drew
    "ignore_pattern": "|".join(rf"^{re.escape(name)}$" for name in _UNTITLED) or "$^",
    "within_subsection_order": "gallery.Order",
    "reset_argv": "gallery.seeded",
    "capture_repr": (),
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "show_memory": False,
    "image_scrapers": ("matplotlib",),
    "default_thumb_file": str(Path(__file__).parent / "pictures" / "release.png"),
}
warnings.filterwarnings("ignore", category=dpmedian.InsecureSeedWarning)
