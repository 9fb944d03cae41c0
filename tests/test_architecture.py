"""The wall, as imports: methods -> mechanisms -> (source, accounting) -> _core."""

import ast
from pathlib import Path

import dpmedian

PACKAGE = Path(dpmedian.__file__).parent


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_methods_never_import_the_core():
    for path in (PACKAGE / "methods").glob("*.py"):
        assert not any("_core" in name for name in imports(path)), path


def test_mechanisms_never_import_methods_or_plans():
    for path in (PACKAGE / "mechanisms").glob("*.py"):
        upward = {name for name in imports(path) if name.startswith(("dpmedian.methods", "dpmedian.plan"))}
        assert not upward, (path, upward)


def test_accounting_imports_nothing_else_of_ours():
    for path in (PACKAGE / "accounting").glob("*.py"):
        others = {name for name in imports(path) if name.startswith("dpmedian") and ".accounting" not in name}
        assert not others, (path, others)


def test_every_mechanism_and_method_has_its_proof_beside_it():
    for folder in ("mechanisms", "methods"):
        for path in (PACKAGE / folder).glob("*.py"):
            assert path.name == "__init__.py" or path.with_suffix(".md").exists(), f"{path} has no proof"


def test_no_environment_variable_is_read_that_could_change_the_noise():
    sources = [*PACKAGE.rglob("*.py")]
    reading = [path.name for path in sources if "environ" in path.read_text() or "getenv" in path.read_text()]
    assert reading == []
