"""The Python of docs/how-to/from_python.md runs as it stands, with the shapes and numbers that its comments name."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from_python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_code_runs_and_its_comments_are_true(capsys):
    first, second = BLOCKS
    names = {}
    exec(compile(first, PAGE.name, "exec"), names)
    assert names["trace"].attentions.shape == (12, 12, 9, 9) and "(12, 12, 9, 9)" in first
    assert capsys.readouterr().out.count("(") == 3
    exec(compile(second, PAGE.name, "exec"), names)
    assert names["model"].count_params() == 110_106_428 and "110,106,428 parameters" in second
