"""The commands and the Python of the documents run: every one, with small files, small models and few steps.

What a command does is tested beside its code. Here it runs with the options that a document prints; only the numbers
that make it long are smaller, and only the models that it would download or train are small ones.
"""

import ast
import builtins
import gzip
import json
import lzma
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import fsspec
import pytest
from backports import zstd

from bert_tf import checkpoints
from bert_tf.checkpoints.convert import FORMATS as FOLDERS
from bert_tf.cli import main
from bert_tf.inference.exported.formats import FORMATS as PROGRAMS
from tests.conftest import make_bert
from tests.document_blocks import DOCS, PAGES, ROOT, blocks, commands, documents, script_calls, shell_commands

#: Commands that are not run here: a hub and a cluster are not on this machine. A test downloads from a local hub
#: (tests/checkpoints/test_checkpoint_download.py); Dataflow was never tested, and the document says so.
ELSEWHERE = ("download", "DataflowRunner")
LISTENING = ("explore", "serve")
#: Options that make a command long, with the value that they have here.
SMALL = {
    "--steps": "2",
    "--batch-size": "4",
    "--epochs": "1",
    "--shards": "2",
    "--duplicates": "1",
    "--size": "1x16x2",
    "--length": "32",
    "--precision": "float32",
    "--runner-options": "--direct_running_mode=in_memory --direct_num_workers=1",
}
#: Model of a document that is not installed -> the task of the small model in its place.
TASKS = {
    "my-tagger": "tag",
    "small-wnut": "tag",
    "tagger": "tag",
    "similar": "similarity",
    "my-model": "classify",
}
TRAINS = ("pretrain", "finetune")
#: Commands that take minutes with the embedded Base, the default.
LONG_WITH_BASE = (["explain", "saliency"], ["explain", "ablation"])
COMMANDS = [(document, words) for document, words in commands() if not set(ELSEWHERE) & {*words}]


pytestmark = pytest.mark.usefixtures("few_updates_in_each")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A models folder in which a small model has the name of each model that a document downloads."""
    home = tmp_path_factory.mktemp("home")
    bert = make_bert(name="small")
    for name in ("bert-base-uncased", "bert-base-cased", "bert-large-cased", "OWNER--NAME", "small"):
        checkpoints.save(home / name, bert.config, bert.tokenizer, bert.model)
        if name != "small":
            (home / name / "checksums.json").unlink()  # as in a folder that was downloaded
    return home


@pytest.fixture(scope="module")
def tasks(released, tmp_path_factory):
    """Task -> the folder of a small model for it; `choose` is trained, as no such model ships."""
    folder = tmp_path_factory.mktemp("tasks")
    write_files(folder)
    options = ["--model", str(released / "small"), "--epochs", "1", "--batch-size", "4", "--length", "32"]

    def trained(task, train, *more):
        files = ["--train", str(folder / train), "--dev", str(folder / train), "--output", str(folder / task)]
        assert main(["finetune", task, *files, *options, *more]) == 0
        return folder / task

    return {
        "classify": trained("classify", "reviews.csv"),
        "tag": trained("tag", "train.conll"),
        "choose": trained("choose", "choices.csv"),
        "similarity": trained("similarity", "pairs.csv"),
        "answer": checkpoints.find("questions-small-uncased"),
    }


def write_files(folder):
    """A file for each name that the documents use, and the samples."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(ROOT / "assets/samples", folder / "assets/samples")
    sentences = (ROOT / "assets/samples/sentences.txt").read_bytes()
    text = b"\n\n".join(b"\n".join(sentences.split(b"\n")[start : start + 3]) for start in range(0, 24, 3)) + b"\n"
    for name in ("texts.txt", "text.txt", "test.txt", "mine.txt", "some.txt", "my-text.txt", "held-out.txt"):
        (folder / name).write_bytes(text)
    (folder / "corpus").mkdir()
    (folder / "corpus/one.txt").write_bytes(text)
    (folder / "corpus/one.txt.zst").write_bytes(zstd.compress(text))
    (folder / "corpus/one.txt.xz").write_bytes(lzma.compress(text))
    (folder / "texts").mkdir()
    (folder / "texts/one.txt").write_bytes(text)
    masked = [{"text_a": "The capital of France is [MASK]."}, {"text_a": "It rains.", "text_b": "I am wet."}]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in masked), encoding="utf-8")
    rows = [("the big dog ran", "large"), ("a small cat sat", "little")] * 8
    for name in ("reviews.csv", "held.csv", "test.csv"):
        lines = ["text,label", *(f"{output},{label}" for output, label in rows)]
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "texts.csv").write_text("text\nthe big dog\na small cat\n")
    pairs = "".join(f"the cat sat,a cat sat,{score}.0\n" for score in (1, 2, 3, 4, 5, 2, 4, 3))
    for name in ("train.csv", "dev.csv"):
        (folder / name).write_text(pairs)
    pairs = "".join(f"the {word} sat,a {word} is big\n" for word in ("cat", "dog", "bank", "river") * 2)
    for name in ("pairs.csv", "held-pairs.csv"):
        (folder / name).write_text("text,text2\n" + pairs)
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"):
        lines = [f"{number % 2}\t{number}\t{number}\tthe cat sat\ta dog ran" for number in range(8)]
        (folder / name).write_text("\n".join(["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *lines]) + "\n")
    words = "the O\ncat B-ANIMAL\nsat O\n\nin O\nParis B-PLACE\n\n" * 4
    for name in ("train.conll", "dev.conll", "words.conll"):
        (folder / name).write_text(words)
    for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"):
        (folder / name).write_text(words.replace(" ", "\t"))
    lines = [f"the cat,it,sat,ran,{number % 2}" for number in range(8)]
    (folder / "choices.csv").write_text("\n".join(["sent1,sent2,ending0,ending1,label", *lines]) + "\n")


def write_bucket(folder):
    """The files of the documents' bucket, in memory."""
    bucket = fsspec.filesystem("memory")
    bucket.pipe("/bucket/text/one.txt.gz", gzip.compress((folder / "text.txt").read_bytes()))
    bucket.pipe("/bucket/texts.jsonl", (folder / "texts.jsonl").read_bytes())


def scaled(words, small):
    """A command with smaller numbers, and the folder `small` in the place of a model that would be trained."""
    if words[:2] in LONG_WITH_BASE and "--model" not in words:
        words = [*words, "--model", str(small)]
    elif words[:2] == ["convert", "bert-base-cased-embedded"]:
        words = ["convert", str(small), *words[2:]]
    done, trains = [], words[0] in (*TRAINS, "prepare")
    for before, word in zip(["", *words], words):
        word = word.strip("[]") if re.match(r"\[-|.*\w\]$", word) and "[MASK]" not in word else word
        if before == "--runner-options" or (trains and before in SMALL):
            word = SMALL[before]
        elif trains and before in ("--model", "--init"):
            word = str(small)
        if not (trains and "--threads" in (before, word)):  # a process takes the number of its threads only once
            done.append(word.replace("s3://", "memory://"))
    if words[0] == "pretrain":
        missing = (
            {"--steps", "--batch-size", "--length"} - set(words) - ({"--length"} if "--records" in words else set())
        )
        done += [part for option in sorted(missing) for part in (option, SMALL[option])]
    return done


def put_models(folder, tasks, words):
    """In the folder, the model that a command names and that nothing on the page has made."""
    kinds = {"|": "choose", "?": "answer"}
    for name, task in TASKS.items():
        if name in words and words[0] not in TRAINS:
            task = next((kinds[sign] for sign in kinds if any(sign in word for word in words[1:3])), task)
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(tasks[task], folder / name)


def output_of(words):
    """The path that a command writes, or None."""
    if "--output" in words:
        return words[words.index("--output") + 1]
    return words[2] if words[0] == "convert" else None


@pytest.mark.slow
@pytest.mark.parametrize("document", sorted({document for document, words in COMMANDS if words[0] not in LISTENING}))
def test_the_commands_of_a_document_run(document, tmp_path, monkeypatch, capsys, released, tasks):
    """One after another in a folder that has a file for each name of the documents."""
    folder = tmp_path / "work"
    write_files(folder)
    shutil.copytree(released / "small", folder / "path/to/my-model")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BERT_TF_HOME", str(released))
    if document.endswith("at_scale.md"):
        write_bucket(folder)
    if document.endswith(("at_scale.md", "one-way.md")):
        assert main("vocab --input text.txt --output my-vocab --size 200".split()) == 0
    for words in (words for named, words in COMMANDS if named == document and words[0] not in LISTENING):
        put_models(folder, tasks, words)
        written = output_of(words)
        if written and "://" not in written:
            for path in (folder / written, folder / f"{written}.partial"):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        capsys.readouterr()
        assert main(scaled(words, released / "small")) == 0, f"{' '.join(words)}\n{capsys.readouterr().err}"
        output = capsys.readouterr().out
        assert output if not written else "://" in written or (folder / written).exists(), words


@pytest.mark.slow
@pytest.mark.parametrize(
    "document, words", [(document, words) for document, words in COMMANDS if words[0] in LISTENING]
)
def test_a_server_of_a_document_starts_and_answers(document, words, tmp_path, released, tasks):
    """As a process of its own, at a free port; the request that stands below `serve` is sent to it."""
    shutil.copytree(released, tmp_path / "home")
    shutil.copytree(tasks["tag"], tmp_path / "home" / "tagger")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    more = ["--port", str(port), *["--no-browser"][: words[0] == "explore" and "--no-browser" not in words]]
    base = f"/{words[words.index('--base-path') + 1]}" if "--base-path" in words else ""
    place = f"http://127.0.0.1:{port}{base}"
    environment = {**os.environ, "BERT_TF_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen([sys.executable, "-m", "bert_tf", *words, *more], cwd=tmp_path, env=environment)
    try:
        health = f"{place}/health" if words[0] == "serve" else f"{place}/_stcore/health"
        assert b"ok" in answer_of(health, server).lower()
        if words[0] == "serve":
            for code in blocks((ROOT / document).read_text("utf-8"), "bash"):
                for call in shell_commands(code):
                    if call[:1] == ["curl"]:
                        path = re.search(r"//[^/]*(/.*)", call[-1])[1]
                        data = call[call.index("-d") + 1].encode()
                        assert b"Paris" in answer_of(f"{place}{path}", server, data)
    finally:
        server.terminate()
        server.wait(30)


def answer_of(address, server, data=None):
    """What a server answers, as soon as it does."""
    for _ in range(240):
        assert server.poll() is None
        try:
            return urllib.request.urlopen(urllib.request.Request(address, data), timeout=60).read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    raise AssertionError(f"{address} does not answer")


def test_the_programs_of_a_document_are_shell(tmp_path):
    """Every block of a shell, also those of Slurm and of several machines, is accepted by Bash's parser."""
    wrong = []
    for path in documents():
        for code in blocks(path.read_text("utf-8"), "", "bash"):
            done = subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True)
            if done.returncode:
                wrong.append(f"{path.name}: {code}\n{done.stderr}")
    assert not wrong, "\n".join(wrong)


def test_the_page_about_converting_lists_every_format_and_its_dtypes():
    rows = re.findall(
        r"^\| `([\w-]+)`[^|]*\|[^|]*\| ([\w, ]+) \|", (DOCS / "how-to/convert.md").read_text("utf-8"), re.M
    )
    written = {name: tuple(dtypes.split(", ")) for name, dtypes in rows}
    # `convert` writes a preset by keras_nlp where that is installed, in eight bits too.
    expected = {**FOLDERS, **PROGRAMS, "keras-nlp": ("float32", "int8")}
    assert written == {name: tuple(dtypes) for name, dtypes in expected.items()}


def test_the_json_of_a_document_is_json():
    for path in documents():
        for code in blocks(path.read_text("utf-8"), "json"):
            json.loads(code)


def test_the_scripts_of_a_document_are_there():
    assert not [script for _, script, _ in script_calls() if not (ROOT / script).is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted({script for _, script, _ in script_calls()}))
def test_a_script_takes_the_options_that_a_document_gives_it(script, monkeypatch, capsys):
    """Benchmarks and recipes take hours; what they print stands in the documents."""
    monkeypatch.setattr(sys, "argv", [str(ROOT / script), "--help"])
    monkeypatch.setattr(sys, "path", [str((ROOT / script).parent), *sys.path])
    monkeypatch.setattr(os, "environ", os.environ.copy())
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert ended.value.code == 0
    help_text = capsys.readouterr().out
    asked = {option for _, named, options in script_calls() if named == script for option in options}
    assert not {option for option in asked if not re.search(rf"{option}\b(?!-)", help_text)}


EXAMPLES = [
    page
    for page in PAGES
    if blocks((DOCS / page).read_text("utf-8"), "python")
    # These run in tests/batch_jobs (Spark), tests/embedded, tests/inference and tests/checkpoints (KerasHub).
    and page not in ("how-to/at_scale.md", "how-to/from_python.md", "how-to/hooks.md", "reference/family.md")
]


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch, tasks):
    """The blocks of a page run one after another, as a reader types them."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tasks["classify"], tmp_path / "my-model")
    names = {}
    for code in blocks((DOCS / page).read_text("utf-8"), "python"):
        exec(compile(re.sub(r"--epochs \d+", "--epochs 1", code), page, "exec"), names)


def test_most_commands_run():
    assert len(COMMANDS) > 60


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_the_python_of_a_document_names_only_what_stands_above(path):
    """Pasted from the top of its page, no block lacks an import or a variable."""
    known = set(dir(builtins))
    for code in blocks(path.read_text("utf-8"), "python"):
        nodes = list(ast.walk(ast.parse(code)))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                known |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.arg):
                known.add(node.arg)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                known.add(node.id)
        assert {node.id for node in nodes if isinstance(node, ast.Name)} <= known
