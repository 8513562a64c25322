"""The documents name every parameter of a link, and the pages as they are called."""

import re
from pathlib import Path

from ui.shell.catalogue import pages
from ui.shell.page import GROUPS, SECTIONS
from ui.shell.view import _NUMBERS, _PLAIN, _SWITCHES

ROOT = Path(__file__).parents[2]
SOURCES = [path.read_text("utf-8") for folder in ("pages", "ui") for path in sorted((ROOT / folder).rglob("*.py"))]


def rows(heading):
    """The first cells of the table whose header begins so."""
    lines = (ROOT / "docs" / "reference" / "links.md").read_text("utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    table = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        table.append(line.split("|")[1].strip())
    return table


def test_every_shared_parameter_of_a_link_is_in_the_table():
    named = set(re.findall(r"`([a-z_]+)`", " ".join(rows("parameter"))))
    assert named == {*_PLAIN.values(), "mask", *(key for key, _ in _NUMBERS.values()), *_SWITCHES.values()}


def test_every_setting_that_a_page_uses_is_declared_and_no_other():
    declared = {f"{page.name}.{setting}" for page in pages().values() for setting in page.settings}
    used, shared = set(), set()
    for source in SOURCES:
        used |= {f"{page}.{name}" for page, name in re.findall(r"\"([a-z_]+)\.([a-z_]+)\"", source) if page in pages()}
        # A setting that several pages have, each its own.
        shared |= set(re.findall(r'f"\{page\}\.([a-z]+)"', source))
    assert len(used) > 50 and {"file", "lines", "of", "token", "run"} <= shared
    assert used <= declared
    rest = {name.partition(".")[2] for name in declared - used}
    assert shared <= {name.partition(".")[2] for name in declared}
    # The rest is made of a page's name and that of a side.
    assert rest <= shared | {"a", "b", "good", "bad", "from", "instead", "one", "other"}


def test_the_documents_name_the_pages_as_the_sidebar_does():
    documents = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    texts = [" ".join(document.read_text("utf-8").split()) for document in documents]
    named = {name for text in texts for name in re.findall(r"\*([A-Z][\w ]+: [A-Z][^*.]+)\.?\*", text)}
    named = {name for name in named if name.partition(":")[0] in {*SECTIONS, *GROUPS}}
    assert len(named) > 10 and named <= {page.full_title for page in pages().values()}


def test_the_list_of_pages_has_the_sections_of_the_sidebar(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import generated

    parts = re.split(r"^### (.+)\n", generated.pages(), flags=re.MULTILINE)
    listed = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(listed) == list(SECTIONS)
    for page in pages().values():
        (section,) = (name for name, groups in SECTIONS.items() if page.group in groups)
        assert f"\n| {page.title} |" in listed[section]
