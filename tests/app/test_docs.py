"""docs/explorer.md names every page and every parameter of a link."""

import re
from pathlib import Path

from bert_tf.analyses import catalogue
from bert_tf.cli.explain import KINDS
from ui.shell.frame import _MODULES
from ui.shell.view import (
    _NUMBERS,
    _PLAIN,
    _SWITCHES,
    PAGES,
)

ROOT = Path(__file__).parents[2]
SOURCES = [path.read_text("utf-8") for folder in ("pages", "ui") for path in sorted((ROOT / folder).rglob("*.py"))]


def rows(heading):
    """The first cells of the table whose header begins so."""
    lines = (ROOT / "docs" / "explorer.md").read_text("utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    table = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        table.append(line.split("|")[1].strip())
    return table


def test_every_page_is_in_the_table():
    assert set(_MODULES) == set(PAGES)
    titles = [f"{group}: {title}" if group != title else title for group, title in PAGES.values()]
    assert set(rows("page")) == set(titles)


def test_every_parameter_of_a_link_is_in_the_table():
    named = set(re.findall(r"`([a-z_.]+)`", " ".join(rows("parameter"))))
    plain = {*_PLAIN.values(), "mask", *(key for key, _ in _NUMBERS.values()), *_SWITCHES.values()}
    assert plain == {name for name in named if "." not in name}
    own = {name for name in named if "." in name}
    used, shared = set(), set()
    for source in SOURCES:
        used |= {f"{page}.{name}" for page, name in re.findall(r"\"([a-z]+)\.([a-z_]+)\"", source) if page in PAGES}
        # A setting that several pages have, each its own.
        shared |= set(re.findall(r'f"\{page\}\.([a-z]+)"', source))
    assert len(used) > 50 and {"file", "lines", "of", "token", "run"} <= shared
    assert used <= own
    assert shared <= {name.partition(".")[2] for name in own}
    # And no parameter that nothing reads: the rest is made of a page's name and a shared one, or of a side's.
    rest = {name.partition(".")[2] for name in own - used}
    assert rest <= shared | {"good", "bad", "from", "instead", "one", "other"}


def test_the_readme_counts_the_kinds_of_explain():
    (more,) = re.findall(r"explain lens .*and (\d+) more kinds", (ROOT / "README.md").read_text("utf-8"))
    assert int(more) == len(KINDS) + len(catalogue()) - 1
