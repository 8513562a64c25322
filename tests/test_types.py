"""Every public function of the library says the types of what it takes and gives."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECKED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["files"]
PATHS = sorted(str(path.relative_to(ROOT)) for folder in CHECKED for path in (ROOT / folder).rglob("*.py"))


def public_functions(node, within=""):
    """Pairs of a name and a function's node: those of a module and of its public classes."""
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public_functions(child, f"{child.name}.")
        elif isinstance(child, ast.FunctionDef) and not child.name.startswith("_"):
            yield within + child.name, child


@pytest.mark.parametrize("path", PATHS)
def test_public_functions_are_typed(path):
    bare = []
    for name, function in public_functions(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        parameters = function.args
        named = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs, parameters.vararg, parameters.kwarg]
        arguments = [one for one in named if one is not None and one.arg not in ("self", "cls")]
        if function.returns is None or any(one.annotation is None for one in arguments):
            bare.append(name)
    assert bare == []
