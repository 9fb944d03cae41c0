"""Put every Markdown file beside the code into the page of proofs, so that no file is forgotten or copied."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def include_proofs(app, docname, source) -> None:
    if docname == "proofs":
        for proof in sorted((ROOT / "python" / "dpmedian").rglob("*.md")):
            path = f"../{proof.relative_to(ROOT).as_posix()}"
            source[0] += f"\n\n```{{include}} {path}\n:heading-offset: 1\n```\n"


def setup(app) -> dict[str, bool]:
    app.connect("source-read", include_proofs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
