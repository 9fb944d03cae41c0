"""No retired word, no British spelling and no condition with where is in a page, a docstring, a comment or a
message.
"""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The retired words, and what to say instead. A word in backticks is a name of the code and is ignored.
RETIRED = {
    r"\b(?<!be )(?<!are )(?<!is )spreads?\b(?!\s+(?:onto|over|evenly|pair|points|an?)\b)": "core radius",
    r"\bquestions?\b": "query",
    r"\banew\b": "again",
    r"\bmend(?:s|ed)?\b": "fix",
    r"\boutlook\b": "prediction curves",
    r"(?<![Ss]tandard )(?<!mean )\bdeviations?\b": "standard deviation",
    r"\bkinks?\b": "nonsmooth point",
    r"\b[Nn]eighbouring\b": "neighboring",
    r"\b(?:kilo)?metres?\b": "meter, kilometer",
    r"\b(?:in doubt|doubtful)\b": "posterior mass outside of the interval",
    r", for (?:they|it|that|this|there) (?:is|are|was|were|has|have)\b": "because",
}
# Phrases in which such a word has its plain meaning.
PLAIN = (
    r"frequent questions|Questions and answers|questions that you will be asked|Report questions",
    r"Each query to the data as a question in plain words",
    r"how they are spread",
    r"earlier versions call it the\s+spread|the word \"spread\" is retired",
)
# The largest number of retired words in files that still have some. These numbers may only fall.
LEFT = {
    "python/dpmedian/verification/check.py": 2,
    "python/dpmedian/verification/verify.py": 4,
}

PAGES = [
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "how-to").glob("*.md"),
    *(ROOT / "docs" / "decisions").glob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / "python" / "dpmedian").rglob("*.md"),
]
MODULES = sorted((ROOT / "python" / "dpmedian").rglob("*.py"))


def prose_of_page(text: str) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```|`[^`]*`|\{[^}]*\}", "", text, flags=re.DOTALL)


def prose_of_module(text: str) -> str:
    """Comments and sentences in strings of a module, without backticks and braces."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    prose = (token.string for token in tokens if token.type in kinds and " " in token.string)
    return "\n".join(re.sub(r"`[^`]*`|\{[^}]*\}", "", text) for text in prose)


def retired(prose: str) -> list[str]:
    prose = re.sub(r"\s+(?:#\s+)?", " ", prose)
    for plain in PLAIN:
        prose = re.sub(plain, "", prose, flags=re.IGNORECASE)
    return [f"{found[0]!r}: say {instead}" for word, instead in RETIRED.items() for found in re.finditer(word, prose)]


def found_in(path: Path) -> list[str]:
    """Return the retired words of a file, if they are more than are left to be rewritten there."""
    prose = prose_of_page if path.suffix == ".md" else prose_of_module
    found = retired(prose(path.read_text("utf-8")))
    return found if len(found) > LEFT.get(path.relative_to(ROOT).as_posix(), 0) else []


def test_no_retired_word():
    files = {path.relative_to(ROOT).as_posix(): found_in(path) for path in (*PAGES, *MODULES)}
    assert not {path: found for path, found in files.items() if found}


def test_a_retired_word_is_found_and_a_name_is_not():
    assert retired(prose_of_page("The deviation of `spread` is asked anew.\n")) == [
        "'anew': say again",
        "'deviation': say standard deviation",
    ]
    assert retired(prose_of_module('x = f"the spread {spread} of neighbouring data"  # a question')) == [
        "'spread': say core radius",
        "'question': say query",
        "'neighbouring': say neighboring",
    ]


def test_the_glossary_defines_the_words_that_are_said_instead():
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    for word in ("core radius", "query", "nonsmooth point", "neighbors", "sigma"):
        assert re.search(rf"^{word}", glossary, flags=re.MULTILINE), word


@pytest.mark.parametrize("name", ["tutorial", "how-it-works", "default-method", "guarantee", "neighbours", "units"])
def test_pages_link_the_glossary(name):
    assert "](glossary.md)" in (ROOT / "docs" / f"{name}.md").read_text("utf-8")
