"""The documentation site builds, its links lead somewhere, and its commands and examples are those of the program."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from backports import zstd

from bert_tf.checkpoints import list_models
from bert_tf.cli import argument_parser, main

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


#: Commands that train, download, listen or convert are run by tests of their own, in smaller sizes.
QUICK = ("predict", "explain", "features", "evaluate", "models", "check", "vocab")


def needs_more(words):
    """Whether a command names a model that does not come with the package, a server, or a cluster."""
    models = {name for option, name in zip(words, words[1:]) if option in ("--model", "--other")}
    models |= set(words[1:] if words[0] == "check" else ())
    return bool(models - {model.name for model in list_models() if model.kind == "embedded"}) or any(
        "://" in word or word == "--runner" for word in words
    )


QUICK_COMMANDS = [(document, words) for document, words in commands() if words[0] in QUICK and not needs_more(words)]


@pytest.mark.slow
@pytest.mark.parametrize("document", sorted({document for document, _ in QUICK_COMMANDS}))
def test_the_quick_commands_of_a_document_run(document, tmp_path, monkeypatch, capsys):
    """One after another in a folder that has a file for each name of the documents."""
    shutil.copytree(ROOT / "assets/samples", tmp_path / "assets/samples")
    monkeypatch.chdir(tmp_path)
    sentences = (ROOT / "assets/samples/sentences.txt").read_bytes()
    for name in ("texts.txt", "text.txt", "test.txt", "mine.txt", "some.txt"):
        Path(name).write_bytes(sentences)
    Path("corpus").mkdir()
    Path("corpus/one.txt.zst").write_bytes(zstd.compress(sentences))
    masked = [{"text_a": "The capital of France is [MASK]."}, {"text_a": "It rains.", "text_b": "I am wet."}]
    Path("texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in masked), encoding="utf-8")
    for _, words in (command for command in QUICK_COMMANDS if command[0] == document):
        assert main(words) == 0, f"{' '.join(words)}\n{capsys.readouterr().err}"
        output = words[words.index("--output") + 1] if "--output" in words else None
        assert Path(output).exists() if output else capsys.readouterr().out


def test_the_rule_for_quick_commands_leaves_many():
    assert len(QUICK_COMMANDS) >= 15


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
