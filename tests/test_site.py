"""The documentation site builds, its links lead somewhere, and its commands and examples are those of the program."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.cli import argument_parser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROGRAMS = (["python", "-m", "bert_tf"], ["bert-tf"])


def blocks(text, *languages):
    """The code blocks of a document that are in one of these languages."""
    return [code for language, code in _BLOCK.findall(text) if language in languages]


def commands():
    """(document, command line) of every command of this program in the code blocks of the documents."""
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(DOCS / page for page in PAGES)]:
        for code in blocks(path.read_text("utf-8"), "", "bash"):
            for words in shell_commands(code) if re.search(r"bert[-_]tf ", code) else ():
                for program in _PROGRAMS:
                    if words[: len(program)] == program:
                        yield path.relative_to(ROOT).as_posix(), words[len(program) :]


def shell_commands(code):
    """The words of each command of a shell's code."""
    code = re.sub(r"(^|\s)# .*", r"\1", code.replace("\\\n", " "))
    lexer = shlex.shlex(code, posix=True, punctuation_chars="|&;\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    command = []
    for word in [*lexer, "&&"]:
        if set(word) <= set("|&;\n"):
            yield command
            command = []
        else:
            command.append(word)


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_lead_to_a_page_or_heading(tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    targets = {
        path: set(re.findall(r'\bid="([^"]+)"', path.read_text("utf-8")))
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    missing = []
    for path in targets:
        # An address without a scheme or host leads to a file of the site.
        for link in re.findall(r'href="(?![a-z]+:|//)([^"]+)"', path.read_text("utf-8")):
            address, _, anchor = link.partition("#")
            target = (path.parent / address.partition("?")[0]).resolve() if address else path
            if not target.exists() or (anchor and target in targets and anchor not in targets[target]):
                missing.append(f"{path.relative_to(site)}: {link}")
    assert not missing


def test_links_between_documents_work_where_the_markdown_is_read():
    missing = []
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "ARCHITECTURE.md",
        *(DOCS / page for page in PAGES),
    ]:
        for link in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", path.read_text("utf-8")):
            if not (path.parent / link).exists():
                missing.append(f"{path.relative_to(ROOT)}: {link}")
    assert not missing


def test_every_command_in_the_documents_is_accepted_by_its_parser(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("A file that a command reads while its options are parsed.\n", encoding="utf-8")
    refused = []
    for document, words in commands():
        arguments = [word.strip("[]") if word.startswith("[-") else word for word in words]  # optional ones
        try:
            argument_parser(arguments).parse_args(arguments)
        except SystemExit as end:
            if end.code:
                refused.append(f"{document}: {' '.join(words)}\n{capsys.readouterr().err}")
    assert not refused, "\n".join(refused)
    assert len(list(commands())) > 40


EXAMPLES = [
    page for page in PAGES if page.startswith("tutorials/") and blocks((DOCS / page).read_text("utf-8"), "python")
]


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES)
def test_the_python_of_a_tutorial_runs(page, tmp_path, monkeypatch):
    """The blocks of a page run one after another, as a reader types them, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks((DOCS / page).read_text("utf-8"), "python"):
        exec(compile(code, page, "exec"), names)
