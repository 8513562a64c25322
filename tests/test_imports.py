"""The import graph: no arrow up, no circle, no Streamlit in the library, no crowded folder.

The floors are the first table of ARCHITECTURE.md. Imports inside functions count, and so do names of modules that
stand in a string, as in a registry that imports on demand. Imports under `if TYPE_CHECKING:` do not: they never run.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import bert_tf
import bert_tf.explain

ROOT = Path(__file__).parent.parent
MOST_FILES = 16
_FILES = [
    ROOT / "app.py",
    *(path for room in ("bert_tf", "ui", "pages") for path in sorted(ROOT.glob(f"{room}/**/*.py"))),
]
#: Dotted name of a module -> its path without ".py", from the root.
PATHS = {
    ".".join(parts[:-1] if parts[-1] == "__init__" else parts): "/".join(parts)
    for path in _FILES
    for parts in [path.relative_to(ROOT).with_suffix("").parts]
}


def floors():
    """Path, without ".py", of a file or folder -> its floor, 0 is the lowest."""
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Floors")[2].partition("## ")[0]
    rows = [line for line in lines.splitlines() if line.startswith("| `")]
    return {path: number for number, row in enumerate(rows) for path in re.findall("`([^`]+)`", row.split("|")[1])}


def floor_of(module, known):
    """The floor of the file, or else of the nearest folder around it, that the table names."""
    parts = PATHS[module].split("/")
    return next((known[path] for end in range(len(parts), 0, -1) if (path := "/".join(parts[:end])) in known), None)


@cache
def tree(module):
    """The syntax tree of a module."""
    return ast.parse((ROOT / f"{PATHS[module]}.py").read_text(encoding="utf-8"))


def home_of(package, name):
    """The module that `from package import name` reaches; None if it is not one of ours."""
    if f"{package}.{name}" in PATHS:
        return f"{package}.{name}"
    for lazy in (bert_tf, bert_tf.explain):
        if package == lazy.__name__ and name in lazy._HOMES:
            return lazy._HOMES[name]
    return package if package in PATHS else None


def nodes_that_run(node):
    """All nodes below one, less the bodies of `if TYPE_CHECKING:`."""
    yield node
    type_only = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    for child in node.orelse if type_only else ast.iter_child_nodes(node):
        yield from nodes_that_run(child)


def imports(module):
    """The modules of ours that one imports, wherever in the file."""
    names = set()
    for node in nodes_that_run(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} imports relatively; write the whole name"
            names |= {home_of(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            names.add(node.value)
    return (names & PATHS.keys()) - {module}


@cache
def graph():
    """Module -> the modules of ours that it imports."""
    return {module: imports(module) for module in PATHS}


def test_every_file_has_a_floor():
    known = floors()
    assert [
        PATHS[module] for module in PATHS if floor_of(module, known) is None and module not in ("ui", "pages")
    ] == []


def test_no_import_runs_upward():
    known = floors()
    heights = {module: floor_of(module, known) for module in PATHS}
    up = [
        (module, other)
        for module, others in graph().items()
        for other in others
        if None not in (heights[module], heights[other]) and heights[other] > heights[module]
    ]
    assert up == []


def test_no_two_files_import_each_other():
    """What neither imports a file that is left, nor is imported by one, stands in no circle."""
    left = dict(graph())
    while ends := [module for module, others in left.items() if not others & left.keys()]:
        for module in ends:
            del left[module]
    circle = []
    if left:
        module = next(iter(left))
        while module not in circle:
            circle.append(module)
            module = min(left[module] & left.keys())
        circle = [*circle[circle.index(module) :], module]
    assert circle == []


def test_the_library_imports_no_streamlit():
    wrong = {
        module
        for module in PATHS
        if module.split(".")[0] == "bert_tf"
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (getattr(node, "module", None), *(alias.name for alias in node.names))
        if str(name).split(".")[0] in ("streamlit", "ui", "pages", "app")
    }
    assert wrong == set()


def test_no_folder_is_crowded():
    counts = Counter(Path(path).parent.as_posix() for path in PATHS.values())
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}
