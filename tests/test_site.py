"""The documentation site builds, its links lead somewhere, and the program accepts its commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.cli import argument_parser
from tests.document_blocks import DOCS, PAGES, ROOT, commands


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
