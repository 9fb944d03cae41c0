"""The architecture, checked in the sources: layers, imports, and who may open an exact answer."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dpmedian

PACKAGE = Path(dpmedian.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(("dpmedian", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


@cache
def text_of(module: str) -> str:
    return MODULES[module].read_text()


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(text_of(module))


# A module may import from its own layer and from earlier layers. A module that is not listed may import everything.
LAYERS = [
    {
        "dpmedian._core",
        "dpmedian.profile",
        "dpmedian.progress",
        "dpmedian.accounting",
        "dpmedian.digests",
        "dpmedian.documented",
        "dpmedian.recorded",
        "dpmedian.spelling",
        "dpmedian.spherical",
        "dpmedian.warning",
    },
    {"dpmedian.statistics", "dpmedian.parameters", "dpmedian.rates"},
    {
        "dpmedian.tape",
        "dpmedian.postprocess",
        "dpmedian.trace",
        "dpmedian.sources",
        "dpmedian.inference",
        "dpmedian.release",
        "dpmedian.rows",
        "dpmedian.places",
        "dpmedian.step",
    },
    {"dpmedian.mechanisms"},
    {"dpmedian.methods", "dpmedian.clusters", "dpmedian.steps"},
    {"dpmedian.files"},
    {"dpmedian.dataset"},
    {"dpmedian.ledger"},
    {"dpmedian.running"},
    {"dpmedian.planning"},
    {"dpmedian.groups"},
    {
        "dpmedian.api",
        "dpmedian.building_blocks",
        "dpmedian.grouped",
        "dpmedian.clustering",
        "dpmedian.sessions",
        "dpmedian.stepping",
    },
    {"dpmedian.rendering", "dpmedian.plot", "dpmedian.plot_groups", "dpmedian.plot_places"},
    {"dpmedian.verification"},
    {"dpmedian.report"},
    {"dpmedian.presentation"},
]


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The import statements that run, including those inside functions and excluding those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        yield from statements(node)


@cache
def imports(module: str) -> set[str]:
    """The modules of this package that a module imports."""
    found = set()
    for node in statements(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES or name == "dpmedian._core" else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("dpmedian")}


def within(module: str, folder: str) -> bool:
    return module == folder or module.startswith(folder + ".")


@cache
def calls(module: str) -> set[str]:
    """The names of all attributes that a module uses."""
    return {node.attr for node in ast.walk(tree_of(module)) if isinstance(node, ast.Attribute)}


def layer(module: str) -> int | None:
    return next((i for i, rooms in enumerate(LAYERS) if any(within(module, room) for room in rooms)), None)


def test_imports_point_one_way():
    wrong = []
    for module in MODULES:
        own = layer(module)
        if own is None:
            continue
        for other in imports(module):
            other_layer = layer(other)
            if other_layer is None or other_layer > own:
                wrong.append(f"{module} must not import {other}")
    assert not wrong


def test_no_import_cycles():
    graph = {module: imports(module) & set(MODULES) - {module} for module in MODULES}
    graph.pop("dpmedian")  # The package itself imports everything, and no module inside imports it.
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module in done or module not in graph:
            return
        for other in graph[module]:
            visit(other, (*path, module))
        done.add(module)

    for module in graph:
        visit(module, ())


def test_methods_never_meet_the_records():
    """Methods own mechanisms. Only mechanisms query a source, and only the tape opens an answer."""
    methods = [name for name in MODULES if within(name, "dpmedian.methods")]
    opening = {"answer", "local", "pick", "gaussian", "laplace", "geometric", "choose", "hidden"}
    assert not [name for name in methods if "dpmedian._core" in imports(name) or calls(name) & opening]


def test_only_tests_record_and_only_callers_of_building_blocks_state_sensitivities():
    for module in MODULES:
        used = calls(module)
        assert (
            not used & {"record", "entries", "replay"}
            or within(module, "dpmedian.ledger")
            or module
            in (
                "dpmedian.rendering.ledger",
                "dpmedian.cli.ledger",
            )
        ), f"{module}: recording tapes show exact values: they are for tests"
        if "stated" in used:
            assert within(module, "dpmedian.mechanisms") or module == "dpmedian.building_blocks.stated", module
        if module != "dpmedian.nonprivate":
            assert "nonprivate_" not in text_of(module), module


def test_every_mechanism_and_method_has_its_proof_beside_it():
    for folder in ("mechanisms", "methods"):
        for path in (PACKAGE / folder).rglob("*.py"):
            whole = path.parent / f"{path.parent.name}.md"  # A method with several modules has one proof.
            if path.stem not in ("__init__", "stage", "contract", "registry") and not whole.exists():
                assert path.with_suffix(".md").exists(), f"{path} has no proof"


def test_an_assert_narrows_a_type_and_checks_nothing():
    """`python -O` skips asserts, so nothing that privacy depends on may be an assert. Therefore no assert compares
    numbers.
    """
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.Assert):
                compared = [op for part in ast.walk(node.test) if isinstance(part, ast.Compare) for op in part.ops]
                assert all(isinstance(op, (ast.Is, ast.IsNot)) for op in compared), f"{module}, line {node.lineno}"


def test_no_module_compares_the_name_of_a_relation():
    """A relation has properties that say what it means: `cost.protection.relation.size_is_public` and the like."""
    for module in set(MODULES) - {"dpmedian.accounting.protection"}:
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
                names = {part.value for part in (node.left, *node.comparators) if isinstance(part, ast.Constant)}
                assert not names & {"replace", "add_remove"}, f"{module}, line {node.lineno}"


def test_no_environment_variable_is_read_that_could_change_the_noise():
    reading = [name for name, path in MODULES.items() if "environ" in path.read_text() or "getenv" in path.read_text()]
    assert reading == []


def test_no_module_is_longer_than_420_lines():
    lines = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    long = {name: n for name, n in lines.items() if n > 420}
    assert not long


@pytest.mark.skipif(not (ROOT / "src").exists(), reason="the core's sources are not here")
def test_the_core_consists_of_packages():
    assert len([path for path in (ROOT / "src").iterdir() if path.is_file()]) <= 6
    for path in (ROOT / "src").rglob("*.rs"):
        text = path.read_text()
        assert "pyo3::" not in text, path
        assert "numpy::" not in text, path


def test_one_spelling():
    written = [
        *PACKAGE.rglob("*.py"),
        *PACKAGE.rglob("*.md"),
        *(ROOT / "src").rglob("*.rs"),
        *(ROOT / "crates").rglob("*.rs"),
    ]
    assert not [path for path in written if "centre" in path.read_text().lower()]
