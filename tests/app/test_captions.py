"""The captions of the pages are short."""

import ast
import re

import pytest

from ui.shell.limits import ROOT

# The end of a sentence: ".", "!" or "?" before a capital letter or a sign, or at the end of the text. The abbreviations
# in "et al. 2018" and "emb." end none.
_END = re.compile(r"(?<!\bemb)[.!?][)*”]*(?=\s+[^\sa-z0-9]|\s*$)")
_MOST = 2


def written(node):
    """The text of a literal, with "…" for what is put into it; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [written(side) for side in (node.left, node.right)]
        return None if sides == [None, None] else "".join("…" if side is None else side for side in sides)
    return None


def captions(code):
    """The literal texts of all calls of ``caption``: pairs (line, text). Both texts of an ``if`` count."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "caption":
            texts = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "body")]
            for body in texts:
                for one in (body.body, body.orelse) if isinstance(body, ast.IfExp) else (body,):
                    if (text := written(one)) is not None:
                        yield node.lineno, text


def test_a_literal_caption_has_at_most_two_sentences():
    files = {
        path.relative_to(ROOT).as_posix(): path for name in ("pages", "ui") for path in (ROOT / name).rglob("*.py")
    }
    actual = [(name, *one) for name, path in files.items() for one in captions(path.read_text("utf-8"))]
    assert len(actual) > 50
    assert not [one for one in actual if len(_END.findall(one[-1])) > _MOST]


@pytest.mark.parametrize(
    "code, sentences",
    [
        ('st.caption("One. Two. Three.")', [3]),
        ('column.caption(f"One {word}. Two (Feng et al. 2018).")', [2]),
        ('st.caption("One. “Two.” " + more + " Four!")', [3]),
        ('st.caption("One. Two." if one else "Three.")', [2, 1]),
        ("st.caption(text)", []),
    ],
)
def test_sentences_are_counted(code, sentences):
    assert [len(_END.findall(text)) for _, text in captions(code)] == sentences
