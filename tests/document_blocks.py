"""The code blocks and commands of the documents, for the tests that read and run them."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROGRAMS = (["python", "-m", "bert_tf"], ["bert-tf"])
_SCRIPT = re.compile(r"python ((?:benchmarks|recipes|deploy|docs)/\w+\.py)([^`]*)")


def blocks(text, *languages):
    """The code blocks of a document that are in one of these languages."""
    return [code for language, code in _BLOCK.findall(text) if language in languages]


def commands():
    """(document, command line) of every command of this program in the code blocks of the documents."""
    for path in documents():
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


def documents():
    """The paths of all documents with commands."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(DOCS / page for page in PAGES)]


def script_calls():
    """(document, script, its options) of every call of a script of the project, in a block or in a line of text."""
    for path in documents():
        text = path.read_text("utf-8").replace("\\\n", " ")
        lines = [line for code in blocks(text, "", "bash") for line in code.split("\n")]
        inline = re.findall(r"`([^`]+)`", _BLOCK.sub("", text))
        for line in [*lines, *(" ".join(code.split()) for code in inline)]:
            for script, rest in _SCRIPT.findall(line):
                yield path.relative_to(ROOT).as_posix(), script, re.findall(r"(?<=[\s\[])--[a-z][a-z-]*", rest)
