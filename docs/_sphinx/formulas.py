"""Formulas on the pages as MathML, which the browser draws itself: no script, no network, and dark mode works.

The proofs beside the code have formulas as plain text that is readable in an editor: `rho = T D^2/(2 sigma^2)`.
`typeset` finds such formulas and converts them to LaTeX; text that is not recognized as a formula is not changed. Only
signs change, never their order.
"""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import latex2mathml

LETTERS = "alpha beta gamma delta epsilon eta kappa lambda mu nu xi pi rho sigma tau theta phi chi psi omega Delta Phi"
GREEK = LETTERS.split()
FUNCTIONS = {"log2": r"\log_{2}", "sqrt": r"\sqrt", "log": r"\log", "exp": r"\exp", "max": r"\max", "min": r"\min"}
FUNCTIONS |= {word: f"\\operatorname{{{word}}}" for word in ("tanh", "sinh", "tr", "erfc", "ceil", "floor", "round")}
# Words that denote quantities if they are in brackets or in an exponent.
QUANTITIES = ("median", "bits", "units")
RELATIONS = {"=": "=", r"\le": "≤", r"\ge": "≥", "<": "<", ">": ">", "+": "+", "-": "\N{MINUS SIGN}"}
SIGNS = {"<=": r"\le", ">=": r"\ge", "||": r"\|", "+-": r"\pm", "±": r"\pm", "*": r"\cdot", "...": r"\ldots"}
CLOSING = {"(": ")", "[": "]", "{": "}", "|": "|", "||": "||"}
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+\b)?(?![A-Za-z]{2}))"
    r"|(?P<name>[A-Za-z](?:\w*[A-Za-z0-9])?(?:['\u2019]s\b|['\u2019]*))"
    r"|(?P<sign>\.\.\.|<=|>=|\|\||\+-|[-+*/^_=<>±|()\[\]{},])|(?P<other>.)",
    re.DOTALL,
)


def name(word: str) -> str | None:
    """Return a variable in LaTeX (`sigma`, `x_i`, `f_k'`), or None for a word of the language. Quotes may be curled."""
    greek = "|".join(GREEK)
    found = re.fullmatch(f"({greek}|[A-Za-z])(?:([0-9]+)|_({greek}|[A-Za-z0-9]))?('*)", word.replace("\u2019", "'"))
    if not found:
        return None
    letter, *indices, primes = (f"\\{part}" if part in GREEK else part for part in found.groups())
    index = "".join(index for index in indices if index)
    return letter + (f"_{{{index}}}" if index else "") + primes


class Reader:
    """Reads formulas from a text; with `words`, words of the language are allowed, as in a formula on a line of its
    own.
    """

    def __init__(self, text: str, words: bool) -> None:
        self.tokens = [(str(found.lastgroup), found[0]) for found in TOKEN.finditer(text)]
        self.words = words
        self.depth = 0

    def sequence(self, at: int, closing: str | None = None) -> tuple[list[str], int]:
        """The longest formula from this position, and its end; commas belong to it only inside brackets."""
        parts: list[str] = []
        end, kept = at, 0
        while at < len(self.tokens):
            kind, text = self.tokens[at]
            if text == closing:
                return parts, at
            if kind == "space":
                at += 1
                continue
            if text != "||" and (text in SIGNS or text in RELATIONS or text == "/" or (text == "," and self.inside)):
                parts.append(SIGNS.get(text, text))
                at += 1
                continue
            found = self.operand(at, bool(parts))
            if found is None:
                break
            parts.append(found[0])
            at = end = found[1]
            kept = len(parts)
        return (parts, at) if closing else (parts[:kept], end)

    @property
    def inside(self) -> bool:
        return self.words or self.depth > 0

    def operand(self, at: int, follows: bool) -> tuple[str, int] | None:
        """A number, a variable, a function, a sub- or superscript, or a bracket, and its end."""
        kind, text = self.tokens[at]
        if kind == "number":
            return text, at + 1
        if kind == "name":
            if text in FUNCTIONS:
                return self.root(at + 1) if text == "sqrt" else (FUNCTIONS[text], at + 1)
            article = text in ("a", "A", "I") and not self.inside and not self.beside_a_sign(at)
            if (symbol := name(text)) is not None and not article:
                return symbol, at + 1
            return (word(text), at + 1) if self.words or (self.depth and text in QUANTITIES) else None
        if text in ("^", "_"):
            script = self.script(at + 1) if follows else None
            return None if script is None else (text + script[0], script[1])
        if text in CLOSING:
            return self.bracket(at)
        return (word(text), at + 1) if self.words else None

    def script(self, at: int) -> tuple[str, int] | None:
        """The text after ^ or _: a name, a number, or a bracket, of which only the inside is shown."""
        minus = self.tokens[at : at + 1] == [("sign", "-")]
        at += minus
        if at >= len(self.tokens):
            return None
        kind, text = self.tokens[at]
        self.depth += 1
        found = (
            self.bracket(at) if text in ("(", "{") else self.operand(at, False) if kind in ("number", "name") else None
        )
        self.depth -= 1
        if found is None:
            return None
        return "{" + "-" * minus + (found[0][1:-1] if text in ("(", "{") else found[0]) + "}", found[1]

    def bracket(self, at: int) -> tuple[str, int] | None:
        """A bracket with its content, or None if something in it is not a formula."""
        opening = self.tokens[at][1]
        closing = CLOSING[opening]
        self.depth += 1
        parts, end = self.sequence(at + 1, closing)
        self.depth -= 1
        if not parts or end >= len(self.tokens) or self.tokens[end][1] != closing:
            return None
        left, right = (r"\|", r"\|") if opening == "||" else (opening, closing)
        return f"{left}{' '.join(parts)}{right}", end + 1

    def root(self, at: int) -> tuple[str, int] | None:
        at += self.tokens[at : at + 1] == [("space", " ")]
        if at >= len(self.tokens):
            return None
        found = self.operand(at, False)
        if found is None:
            return None
        return f"\\sqrt{{{found[0][1:-1] if self.tokens[at][1] == '(' else found[0]}}}", found[1]

    def beside_a_sign(self, at: int) -> bool:
        near = [self.tokens[i] for i in (at - 2, at - 1, at + 1, at + 2) if 0 <= i < len(self.tokens)]
        return any(text in RELATIONS or text in ("<=", ">=", "^", "_", "/") for _, text in near)


def word(text: str) -> str:
    return f"\\text{{ {text} }}"


def typeset(text: str) -> list[str | nodes.math]:
    """Return the text in pieces, with its formulas as math nodes."""
    reader, pieces, at = Reader(text, words=False), list[str | nodes.math](), 0
    while at < len(reader.tokens):
        kind, token = reader.tokens[at]
        # The text after a hyphen without a space is the end of a compound word, and a slash may belong to a path.
        compound = at > 0 and reader.tokens[at - 1][1] in ("-", "/", "_", "^")
        parts, end = ([], at) if kind == "space" or compound else reader.sequence(at)
        if is_formula(parts) and drawn(" ".join(parts)):
            pieces += short(parts)
            at = end
        else:
            pieces.append(token)
            at += 1
    return pieces


def is_formula(parts: list[str]) -> bool:
    """Return whether a piece is more than a number or the name of a function, and does not begin inside a word."""
    if not parts or parts[0] in ("+", "/", "=", ",", "<", ">", r"\cdot", r"\le", r"\ge", r"\ldots"):
        return False
    words = {*FUNCTIONS.values(), *SIGNS.values()}
    return any(re.search(r"[A-Za-z]|\^", part) for part in parts if part not in words and not part[0].isdigit()) or any(
        part.startswith("^") for part in parts
    )


def short(parts: list[str]) -> list[str | nodes.math]:
    """A formula in the prose; a long formula is divided into pieces between which a line may break."""
    if len("".join(parts)) < 30:
        formula = " ".join(parts)
        return [nodes.math(formula, formula)]
    pieces: list[str | nodes.math] = []
    piece: list[str] = []
    for part in [*parts, None]:
        if part is not None and (part not in RELATIONS or not piece):
            piece.append(part)
            continue
        formula = " ".join(piece)
        pieces.append(nodes.math(formula, formula))
        if part is not None:
            pieces.append(f" {RELATIONS[part]} ")
        piece = []
    return pieces


def drawn(latex: str, block: bool = False) -> str | None:
    """Return the MathML, or None if the LaTeX cannot be parsed."""
    try:
        return latex2mathml.tex2mathml(latex, as_block=block)
    except (SyntaxError, ValueError, IndexError, AttributeError):
        return None


def typeset_proofs(app, doctree, docname) -> None:
    """Typesets the plain formulas of the page of proofs, in the prose and on lines of their own."""
    if docname != "proofs":
        return
    for text in list(doctree.findall(nodes.Text)):
        parent = text.parent
        if isinstance(parent, nodes.literal | nodes.literal_block | nodes.math | nodes.title):
            continue
        pieces = typeset(text.astext())
        if any(isinstance(piece, nodes.math) for piece in pieces):
            parent.replace(text, [piece if isinstance(piece, nodes.math) else nodes.Text(piece) for piece in pieces])
    for block in list(doctree.findall(nodes.literal_block)):
        lines = [" ".join(Reader(line, words=True).sequence(0)[0]) for line in block.astext().splitlines()]
        if all(line and drawn(line, block=True) for line in lines):
            block.parent.replace(block, [nodes.math_block(line, line, number=None, nowrap=False) for line in lines])


def visit_math(translator, node) -> None:
    latex = node.astext()
    translator.body.append(drawn(latex) or f"<code>{translator.encode(latex)}</code>")
    raise nodes.SkipNode


def visit_math_block(translator, node) -> None:
    latex = node.astext()
    mathml = drawn(latex, block=True) or f"<code>{translator.encode(latex)}</code>"
    translator.body.append(f'<div class="formula">{mathml}</div>\n')
    raise nodes.SkipNode


def setup(app) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("doctree-resolved", typeset_proofs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
