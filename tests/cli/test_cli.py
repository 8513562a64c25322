"""The command line: what it prints, what it writes, and one clear line for each mistake."""

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_tf.batch_jobs.jobs import BadLine, row_of_line
from bert_tf.checkpoints.model_checksums import write_model_checksums
from bert_tf.cli import main
from bert_tf.cli.shared.render import bar, percent, size, table

ROOT = Path(__file__).resolve().parents[2]


def _process(*arguments, code=None, **environment):
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "bert_tf", *map(str, arguments)]
    settings = {"env": {**os.environ, **environment}, "encoding": "utf-8", "timeout": 300}
    return subprocess.run(command, capture_output=True, cwd=ROOT, **settings)


def _complaint(capsys, argv):
    """The one line on standard error of a command that the user got wrong."""
    assert main([str(argument) for argument in argv]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    assert "Traceback" not in lines[0] and lines[0].startswith("python -m bert_tf")
    return lines[0]


@pytest.mark.skipif(sys.platform == "win32", reason="there a process cannot send itself the signal of Ctrl-C")
def test_ctrl_c_before_the_command_has_begun_or_after_its_end_shows_no_traceback():
    press = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    run = "from bert_tf.__main__ import run; sys.argv = ['bert-tf', '--version']; sys.exit(run())"
    finder = f"class Finder:\n    def find_spec(self, name, *_):\n        if name == 'bert_tf.cli': exec({press!r})"
    at_first = f"import sys\n{finder}\nsys.meta_path.insert(0, Finder())\n{run}"
    at_last = f"import atexit, sys\natexit.register(exec, {press!r}, {{}})\n{run}"
    # The tests may run in the background, where the signal is ignored.
    usual = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    for code in (at_first, at_last):
        done = _process(code=usual + code)
        assert done.returncode == -signal.SIGINT and done.stderr == ""  # a shell reports it as 130


def test_the_help_of_an_analysis_shows_a_default_once(capsys):
    assert main(["explain", "dataset", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "one forward pass per token (default masks next order replaced classes)" in shown


def test_importing_helping_and_listing_do_not_import_tensorflow():
    code = (
        "import sys, bert_tf, bert_tf.explain, bert_tf.inference.bert, bert_tf.checkpoints\n"
        "from bert_tf.cli import main\n"
        "names = ('predict', 'evaluate', 'pretrain', 'finetune', 'features', 'download', 'convert')\n"
        "helps = [['finetune', 'classify', '--help'], *([name, '--help'] for name in names)]\n"
        "for argv in (['--help'], *helps, ['models'], ['info', 'bert-tiny']):\n"
        "    assert main(argv) == 0, argv\n"
        "assert main(['predict', 'a [MASK]', '--model', 'no-such-model']) == 2\n"
        "heavy = {'tensorflow', 'keras', 'keras_hub', 'tensorflow_text', 'torch', 'transformers'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = _process(code=code)
    assert done.returncode == 0, done.stderr
    assert "bert-base-uncased" in done.stdout


def test_the_usage_of_pretrain_says_that_one_of_its_starts_is_required(capsys):
    assert main(["pretrain", "--help"]) == 0
    assert "(--init MODEL | --size SIZE | --student-layers N)" in " ".join(capsys.readouterr().out.split())


def test_a_prediction_imports_no_library_that_it_does_not_need(tiny_folder):
    code = (
        "import sys\n"
        "from bert_tf.cli import main\n"
        f"assert main(['predict', 'the [MASK]', '--model', {str(tiny_folder)!r}]) == 0\n"
        "heavy = {'keras_nlp', 'keras_hub', 'tensorflow_text', 'torch', 'transformers', 'sklearn', 'matplotlib', "
        "'pandas'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        # What Keras did without is there for everybody else.
        "import matplotlib, pandas, sklearn.linear_model\n"
    )
    done = _process(code=code)
    assert done.returncode == 0, done.stderr


def test_what_is_loaded_already_is_not_left_out():
    code = (
        "import sys, pandas\n"
        "from bert_tf.startup import without_modules\n"
        "with without_modules():\n"
        "    import pandas as again\n"
        "    assert again is pandas\n"
        "    try:\n"
        "        import sklearn\n"
        "    except ImportError:\n"
        "        pass\n"
        "    else:\n"
        "        sys.exit('sklearn was imported')\n"
        "assert sys.modules['pandas'] is pandas and 'sklearn' not in sys.modules\n"
    )
    done = _process(code=code)
    assert done.returncode == 0, done.stderr


def test_a_server_imports_keras_without_them_while_another_thread_imports_one():
    code = (
        "import sys, threading\n"
        "import bert_tf\n"
        "from bert_tf.startup import lean_tensorflow, without_modules\n"
        "with without_modules():\n"
        "    other = threading.Thread(target=lambda: __import__('pandas'))\n"
        "    other.start(), other.join()\n"
        "assert 'pandas' in sys.modules\n"
        "lean_tensorflow()\n"
        "import keras, tensorflow\n"
        "assert not {'sklearn', 'matplotlib', 'jax'} & set(sys.modules)\n"
        "import jax, matplotlib, sklearn.linear_model\n"
        "assert keras.Model is tensorflow.keras.Model\n"
        # The classes of this project are registered with Keras all the same.
        "assert any(name.startswith('bert_tf') for name in keras.saving.get_custom_objects())\n"
    )
    done = _process(code=code)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux only")
def test_a_server_lets_tensorflow_compute_with_a_low_priority():
    code = (
        "import os, pathlib\n"
        "from bert_tf.startup import lean_tensorflow, start_tensorflow_threads\n"
        "lean_tensorflow()\n"
        "start_tensorflow_threads()\n"
        "import tensorflow as tf\n"
        "square = tf.function(lambda x: tf.matmul(x, x)).get_concrete_function(tf.ones((2048, 2048)))\n"
        "for _ in range(8):\n"
        "    square(tf.ones((2048, 2048)))\n"
        "names, ticks = {0: set(), 10: set()}, {0: 0, 10: 0}\n"
        "for task in pathlib.Path('/proc/self/task').iterdir():\n"
        "    name, _, fields = (task / 'stat').read_text().rpartition(')')\n"
        "    priority = os.getpriority(os.PRIO_PROCESS, int(task.name))\n"
        "    names[priority].add(name.partition('(')[2])\n"
        "    ticks[priority] += int(fields.split()[11]) if priority else 0\n"
        "assert os.getpriority(os.PRIO_PROCESS, 0) == 0\n"
        "assert 'tf_Compute' in names[10] and 'tf_Compute' not in names[0], names\n"
        "assert ticks[10] >= 5, ticks\n"  # hundredths of a second: the products ran there
    )
    done = _process(code=code)
    assert done.returncode == 0, done.stderr


def test_openvino_imports_its_converter_when_somebody_asks_for_it():
    code = (
        "import sys\n"
        "import bert_tf\n"
        "import openvino\n"
        "assert 'openvino.tools.ovc' not in sys.modules and not hasattr(openvino, 'convert_models')\n"
        "from openvino import convert_model\n"
        "import openvino.tools.ovc\n"
        "assert convert_model is openvino.convert_model is openvino.tools.ovc.convert_model\n"
    )
    done = _process(code=code)
    assert done.returncode == 0, done.stderr


def test_the_process_prints_one_json_object_and_nothing_else(tiny_folder, tiny_bert):
    done = _process(
        "predict",
        "The cats [MASK]",
        "it ran",
        "--mask",
        "cats",
        "--top-k",
        "3",
        "--json",
        "--model",
        tiny_folder,
    )
    assert done.returncode == 0 and done.stderr == ""
    record = json.loads(done.stdout)
    answer = tiny_bert.predict("The cats [MASK]", "it ran", ["cats"], top_k=3)
    assert list(record) == ["model", "tokens", "masks", "nsp", "truncated"]
    assert record["model"] == tiny_folder.name and record["tokens"] == list(answer.tokens)
    assert list(record["masks"][0]) == ["position", "original", "predictions"]
    assert [mask["original"] for mask in record["masks"]] == ["cat", "##s", None]
    for mine, theirs in zip(record["masks"], answer.masks):
        assert mine["position"] == theirs.position
        assert [p["token"] for p in mine["predictions"]] == [p.token for p in theirs.predictions]
        for p, q in zip(mine["predictions"], theirs.predictions):
            assert p["probability"] == pytest.approx(q.probability, abs=1e-5)
    assert record["nsp"] == pytest.approx(answer.nsp.to_dict(), abs=1e-5)
    assert record["truncated"] is None


def test_a_mistake_in_a_process_is_exit_code_two_and_one_line():
    done = _process("predict", "a [MASK]", "--model", "no-such-model")
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1 and "no-such-model" in done.stderr


def test_output_for_a_person_shows_masks_and_the_score(tiny_folder, capsys):
    assert main(["predict", "the cat sat", "it ran", "--mask", "cat", "--model", str(tiny_folder)]) == 0
    output = capsys.readouterr().out
    assert '[MASK] at token 2, in place of "cat" (rank ' in output and "█" in output
    assert "Does the second text follow the first?" in output


def test_the_whole_trace_can_be_written(tmp_path, tiny_folder, tiny_bert):
    target = tmp_path / "trace.npz"
    assert main(["predict", "the [MASK]", "it ran", "--trace", str(target), "--model", str(tiny_folder)]) == 0
    trace = tiny_bert.trace("the [MASK]", "it ran")
    with np.load(target) as stored:
        for name in ("logits", "attentions", "hidden_states", "pooled"):
            np.testing.assert_allclose(stored[name], getattr(trace, name), atol=1e-5)
    assert os.listdir(tmp_path) == ["trace.npz"]


def test_what_was_cut_is_in_the_answer(tiny_folder, capsys):
    text = "[MASK] " + "cat " * 300
    assert main(["predict", text, "--json", "--model", str(tiny_folder)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["truncated"] == {"tokens_a": 301 - 126, "tokens_b": 0} and len(record["tokens"]) == 128
    assert main(["predict", text, "--model", str(tiny_folder)]) == 0
    assert "Cut off at the end: 175 tokens of text A" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv, sentence",
    [
        ([], "required: COMMAND"),
        (["fly"], "invalid choice: 'fly' .choose from 'explore'"),
        (["predct", "the [MASK]"], r"invalid choice: 'predct'\. Did you mean predict\? .see"),
        (["predict", "the [MASK]", "--topk=3"], r"arguments: --topk=3\. Did you mean --top-k\? .see"),
        (["--verison"], r"^python -m bert_tf: unrecognized arguments: --verison\. Did you mean --version\? .see"),
        (["--model", "x", "predict", "the [MASK]"], "^python -m bert_tf: unrecognized arguments: --model .see"),
        (["explain", "--model=x", "saliency", "a"], "explain: unrecognized arguments: --model=x .see"),
        (["predict", "--input", ""], "The name of a file is empty: give a name."),
        (["predict"], "Give a text"),
        (["predict", "--mask", "cat", "the cat"], "Put it before --mask"),
        (["predict", "--target", "cat", "the [MASK]"], "Put it before --target"),
        (["predict", "  "], "text_a is empty"),
        (["predict", "the [MASK]", "--top-k", "0"], "top_k must be .* not 0"),
        (["predict", "the [MASK]", "--top-k", "many"], "invalid int value: 'many'"),
        (["predict", "the [MASK]", "--nonsense"], "unrecognized arguments: --nonsense .see .* predict --help"),
        (["explain", "saliency", "a", "--nonsense"], "--nonsense .see .* explain saliency --help"),
        (["convert", "x", "y", "--max-shard-mb", "0"], "--max-shard-mb must be at least 1, not 0"),
        (["predict", "the cat", "--output", "x"], "--output goes with --input"),
        (["predict", "the cat", "--input", "x"], "leave TEXT_A"),
        (["predict", "--input", __file__, "--output", "/"], "/ is a folder"),
        (["predict", "--input", __file__, "--output", ""], "The name of the file to write is empty: give a name"),
        (["predict", "the [MASK]", "--batch-size", "0"], "--batch-size: 0 was given; it must be 1 or more"),
        (["predict", "the [MASK]", "--stride", "0"], "--stride: 0 was given; it must be 1 or more"),
        (["predict", "--input", "/no/such/file"], "/no/such/file: No such file"),
        (["predict", "--input", "/"], "Is a directory"),
        (["predict", "--input", __file__, "--output", "/no/x"], "/no/x: The folder to write it to does not exist"),
        (["info", "no-such-model"], "no-such-model"),
        (["download", "no-such-model"], "no-such-model"),
        (["convert", "no-such-model", "x"], "no-such-model"),
        (
            ["convert", "bert-small-uncased-embedded", "x", "--to", "foo"],
            "keras-nlp, onnx, openvino, saved-model, keras.",
        ),
        (["evaluate", "mlm", "--text", "/no/such/file"], "no text file /no/such/file"),
        (["evaluate", "mlm", "--text", __file__, "--by-position", "--html", "-"], "does not take this: give the name"),
        (
            ["evaluate", "mlm", "--text", __file__, "--by-position", "--html", "/no/x.html", "--model", "none"],
            "/no/x.html: The folder to write it to does not exist",  # before the model is looked for
        ),
        (["evaluate", "speed", "--text", "x"], "invalid choice: 'speed'"),
        (
            ["vocab", "--input", __file__, "--output", __file__],
            "test_cli.py is a file, where a folder is to be written",
        ),
        (
            "finetune classify --model bert-small-uncased-embedded --train x.csv --output".split()
            + [__file__ + "/new"],
            "test_cli.py is a file, where a folder is to be written",
        ),
    ],
)
def test_each_mistake_is_told_in_one_line(capsys, argv, sentence):
    assert re.search(sentence, _complaint(capsys, argv))


@pytest.mark.parametrize(
    "argv, sentence",
    [
        (["the cat sat"], "nothing to predict"),
        (["the carrot", "--mask", "carrots"], "Did you mean 'carrot'"),
        (["the [MASK]", "--precision", "int3"], "int3"),
        (["cat " * 300 + "[MASK]"], "cut off"),
    ],
)
def test_each_mistake_that_the_model_finds_is_told_in_one_line(capsys, tiny_folder, argv, sentence):
    assert sentence in _complaint(capsys, ["predict", *argv, "--model", tiny_folder])


def test_a_model_without_the_head_says_which(capsys, headless_folder):
    assert "masked language model" in _complaint(capsys, ["predict", "the [MASK]", "--model", headless_folder])
    assert "next-sentence" in _complaint(capsys, ["predict", "the cat", "it ran", "--model", headless_folder])


def test_a_defect_of_the_program_is_not_taken_for_a_mistake(monkeypatch):
    from bert_tf.cli import models as command

    # As if it stood in the package: what code in C refuses leaves no frame of its own.
    scope = {}
    exec(compile("def run(args):\n    return int('seven')\n", command.__file__, "exec"), scope)
    monkeypatch.setattr(command, "run", scope["run"])
    with pytest.raises(ValueError, match="seven"):
        main(["models"])


def test_a_file_is_answered_line_by_line_and_bad_lines_are_told(tmp_path, tiny_folder, tiny_bert, capsys):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(
        b'\xef\xbb\xbf{"text_a": "the [MASK]"}\n'
        b"\n"
        b"not json\n"
        b'{"text_a": "the cat", "text_b": "it ran", "mask": ["cat", 1]}\n'
        b"[1]\n"
        b'{"text": "the cat"}\n'
        b'{"text_a": "the cat"}\n'
        b'{"text_a": "\xff"}\n'
        b'{"text_a": 7}\n'
        b'{"text_a": "the cat", "mask": {"cat": 1}}\n'
        b'{"text_a": "a cat", "mask": "cat"}'
    )
    argv = [
        "predict",
        "--input",
        source,
        "--output",
        target,
        "--model",
        tiny_folder,
        "--top-k",
        2,
        "--batch-size",
        2,
    ]
    assert main([str(argument) for argument in argv]) == 3
    records = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert len(records) == 10
    bad = {record["line"]: record["error"] for record in records if "error" in record}
    assert sorted(bad) == [3, 5, 6, 7, 8, 9, 10]
    messages = capsys.readouterr().err
    assert (
        all(f"line {number}: " in messages for number in bad)
        and "3 answered, 7 bad lines, 1 blank line left out." in messages
    )
    expected = tiny_bert.predict("the cat", "it ran", ["cat", 1], top_k=2).to_dict()
    assert records[2]["tokens"] == expected["tokens"] and records[2]["masks"][0]["original"] == "the"
    assert os.listdir(tmp_path) and not target.with_name("out.jsonl.part").exists()


def test_a_file_without_one_good_line_is_a_mistake_and_writes_nothing(tmp_path, tiny_folder, capsys):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("nothing\nhere\n")
    target.write_text("of an earlier run")
    assert main(["predict", "--input", str(source), "--output", str(target), "--model", str(tiny_folder)]) == 2
    assert "None of the 2 lines" in capsys.readouterr().err
    assert target.read_text() == "of an earlier run" and len(os.listdir(tmp_path)) == 2


def test_a_file_of_one_bad_line_is_said_in_the_singular(tmp_path, tiny_folder, capsys):
    source = tmp_path / "in.jsonl"
    source.write_text("null\n")
    command = ["predict", "--input", str(source), "--quiet", "--model", str(tiny_folder)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "a JSON null, where an object" in error
    assert error.endswith(f"The only line of {source} could not be answered.\n")
    source.write_text('null\n{"text_a": "the [MASK]"}\n')
    assert main(command) == 3
    assert "1 answered, 1 bad line." in capsys.readouterr().err


def test_bad_lines_alone_on_standard_output_do_not_claim_that_nothing_was_written(tmp_path, tiny_folder, capsys):
    source = tmp_path / "in.jsonl"
    source.write_text("nothing\nhere\n")
    assert main(["predict", "--input", str(source), "--quiet", "--model", str(tiny_folder)]) == 2
    captured = capsys.readouterr()
    assert [json.loads(line)["line"] for line in captured.out.splitlines()] == [1, 2]
    assert captured.err.splitlines()[-1].endswith(f"None of the 2 lines of {source} could be answered.")


def test_a_pipe_is_read_once_and_answered(tmp_path, tiny_folder, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"text_a": "the [MASK]"}\n' * 3,), daemon=True)
    writer.start()
    assert main(["predict", "--input", str(pipe), "--quiet", "--model", str(tiny_folder)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_pipe_takes_the_answers_and_stays_a_pipe(tmp_path, tiny_folder):
    source, pipe, got = tmp_path / "in.jsonl", tmp_path / "pipe", []
    source.write_text('{"text_a": "the [MASK]"}\n')
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    argv = ["predict", "--input", source, "--output", pipe, "--quiet", "--model", tiny_folder]
    assert main([str(argument) for argument in argv]) == 0
    reader.join(60)
    assert json.loads(got[0])["tokens"][1] == "the" and pipe.is_fifo()


def test_a_full_disk_is_told_with_the_files_name(tmp_path, tiny_folder, capsys, monkeypatch):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text_a": "the [MASK]"}\n')

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bert_tf.cli.batch._answer_lines", full)
    assert _complaint(capsys, ["predict", "--input", source, "--output", target, "--model", tiny_folder]) == (
        f"python -m bert_tf: {target}: No space left on device."
    )
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_a_full_disk_behind_standard_output_is_one_line(capsys, monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert _complaint(capsys, ["models"]) == "python -m bert_tf: No space left on device."


@pytest.mark.parametrize(
    "environment, written",
    [
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}, "--columns A,B,…"),
        ({"PYTHONIOENCODING": "ascii"}, "--columns A,B,?"),
    ],
)
def test_output_takes_characters_that_the_systems_encoding_lacks(environment, written):
    done = _process("predict", "--help", **environment)
    assert done.returncode == 0 and not done.stderr and written in done.stdout, done.stderr


@pytest.mark.parametrize(
    "environment, written",
    [
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}, "'größe'"),
        ({"PYTHONIOENCODING": "ascii"}, r"'gr\xf6\xdfe'"),
    ],
)
def test_errors_take_characters_that_the_systems_encoding_lacks(environment, written):
    code = r"import sys; from bert_tf.cli import main; sys.argv = ['', 'info', 'gr\xf6\xdfe']; sys.exit(main())"
    done = _process(code=code, **environment)
    assert done.returncode == 2 and written in done.stderr, done.stderr


def test_a_closed_standard_output_is_no_defect(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["models"]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of Windows closes no standard input")
@pytest.mark.parametrize("command", [["predict"], ["explain", "dataset"]])
def test_a_closed_standard_input_that_is_to_be_read_is_one_line(tiny_folder, command):
    argv = [sys.executable, "-m", "bert_tf", *command, "--input", "-", "--model", str(tiny_folder)]
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *argv], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    expected = "Standard input is closed, so - cannot be read: give the name of a file, or a pipe."
    assert done.stderr == f"python -m bert_tf: {expected}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of Windows has no such redirections")
@pytest.mark.parametrize("redirected", ["2>&-", "2>&1 >&3 3>&- | true"])
def test_work_that_nobody_hears_of_is_done(tmp_path, tiny_folder, redirected):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text_a": "the [MASK]"}\n{"text_a": "the"}\n' * 2)
    argv = [sys.executable, "-m", "bert_tf", "predict", "--input", source, "--model", tiny_folder]
    for output in ([], ["--output", target]):
        command = ["sh", "-c", f'exec 3>&1; "$@" {redirected}', "sh", *map(str, [*argv, *output])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines = (target.read_text() if output else done.stdout).splitlines()
        assert ["error" in json.loads(line) for line in lines] == [False, True, False, True] and not done.stderr


def test_a_pair_that_the_model_cannot_judge_is_said(tmp_path, tiny_folder, capsys):
    folder = tmp_path / "masked-lm"
    shutil.copytree(tiny_folder, folder)
    values = load_file(folder / "model.safetensors")
    save_file(
        {name: value for name, value in values.items() if "seq_relationship" not in name}, folder / "model.safetensors"
    )
    write_model_checksums(folder)
    note = "masked-lm has no next-sentence head: it predicts nothing about the relation of the two texts."
    argv = ["predict", "the cat sat", "it ran", "--mask", "cat", "--model", str(folder)]
    assert main(argv) == 0
    assert capsys.readouterr().out.splitlines()[-1] == note
    assert main([*argv, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["nsp"] is None and captured.err.strip() == note
    source = tmp_path / "in.jsonl"
    for record, messages in (({"text_b": "it ran"}, note), ({"text_b": " "}, ""), ({}, "")):
        source.write_text(json.dumps({"text_a": "the [MASK]", **record}) + "\n")
        assert main(["predict", "--input", str(source), "--quiet", "--model", str(folder)]) == 0
        assert capsys.readouterr().err.strip() == messages


def test_a_file_is_not_overwritten_with_its_own_answers(tmp_path, capsys):
    source = tmp_path / "in.jsonl"
    source.write_text('{"text_a": "the [MASK]"}\n')
    assert "same file" in _complaint(capsys, ["predict", "--input", source, "--output", source])


def test_standard_output_takes_the_answers(tmp_path, tiny_folder, capsys):
    source = tmp_path / "in.jsonl"
    source.write_text('{"text_a": "the [MASK]"}\n')
    assert main(["predict", "--input", str(source), "--quiet", "--model", str(tiny_folder)]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["tokens"][1] == "the" and captured.err == ""


def test_deeply_nested_json_is_a_bad_line():
    assert isinstance(row_of_line(b"[" * 100_000), BadLine)


def test_models_are_listed_for_people_and_programs(capsys):
    assert main(["models"]) == 0
    assert "bert-large-cased" in capsys.readouterr().out
    assert main(["models", "--json"]) == 0
    models = {model["name"]: model for model in json.loads(capsys.readouterr().out)}
    assert models["bert-base-uncased"]["parameters"] == 110_106_428
    assert main(["info", "bert-base-uncased", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["config"]["hidden_size"] == 768


def test_task_models_are_listed_with_their_task(capsys):
    assert main(["models", "--json"]) == 0
    tasks = {model["name"]: model["task"] for model in json.loads(capsys.readouterr().out)}
    assert tasks["sentiment-base-cased"] == "classify" and tasks["questions-small-uncased"] == "answer"
    assert tasks["bert-base-cased-embedded"] is None
    assert main(["info", "sentiment-base-cased"]) == 0
    assert re.search(r"^heads +classify$", capsys.readouterr().out, re.MULTILINE)
    assert main(["info", "entities-base-cased"]) == 0
    assert re.search(r"^architectures +\['BertForTokenClassification'\]$", capsys.readouterr().out, re.MULTILINE)


def test_info_describes_a_folder_of_any_place_and_name(tmp_path, tiny_folder, capsys):
    shutil.copytree(tiny_folder, tmp_path / "My BERT")
    assert main(["info", str(tmp_path / "My BERT"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["name"] == "My BERT" and facts["path"] == str(tmp_path / "My BERT")
    assert facts["heads"] == ["mlm", "nsp", "pooler"] and facts["config"]["hidden_size"] == 32


def test_the_models_directory_and_what_is_wrong_in_it_are_shown(tmp_path, tiny_folder, capsys, monkeypatch):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    shutil.copytree(tiny_folder, tmp_path / "My BERT")
    assert main(["models"]) == 0
    output = capsys.readouterr().out
    assert f"Models directory: {tmp_path}\n" in output and re.search("My BERT +cannot be read", output)
    assert re.search("^My BERT: .*rename it", output, re.MULTILINE)
    assert main(["models", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert all(record["models_dir"] == str(tmp_path) for record in records)
    assert [record["path"] for record in records if record["name"] == "My BERT"] == [str(tmp_path / "My BERT")]


def test_a_model_is_converted_and_predicts_the_same(tmp_path, tiny_folder, capsys):
    assert main(["convert", str(tiny_folder), str(tmp_path / "google"), "--to", "google"]) == 0
    assert "heads: mlm nsp pooler" in capsys.readouterr().out
    answers = []
    for folder in (tiny_folder, tmp_path / "google"):
        assert main(["predict", "the [MASK]", "--json", "--model", str(folder)]) == 0
        answers.append(json.loads(capsys.readouterr().out)["masks"])
    assert answers[0] == answers[1]


def test_bars_percentages_sizes_and_tables_are_aligned():
    assert bar(1.0, 4) == "████" and bar(0.0, 4) == "" and bar(0.53125, 4) == "██▏" and bar(7, 2) == "██"
    assert percent(0.4567) == "45.7%" and percent(0.0000123) == "1.2e-5"
    assert size(999) == "999 B" and size(440_449_768) == "440 MB" and size(1.34e9) == "1.34 GB"
    assert table([("a", "1"), ("long", "22")], "<>") == ["a      1", "long  22"]


def test_words_asked_about_are_printed_under_each_mask(tmp_path, tiny_folder, tiny_bert, capsys):
    argv = ["predict", "the [MASK] [MASK]", "--target", "cat", "dog", "--top-k", "2", "--model", str(tiny_folder)]
    assert main([*argv, "--json"]) == 0
    masks = json.loads(capsys.readouterr().out)["masks"]
    wanted = tiny_bert.predict("the [MASK] [MASK]", top_k=2, targets=["cat", "dog"]).masks
    for mine, theirs in zip(masks, wanted):
        assert list(mine) == ["position", "original", "predictions", "targets"] and len(mine["predictions"]) == 2
        assert [(one["token"], one["rank"], one["probability"]) for one in mine["targets"]] == [
            (one.token, one.rank, pytest.approx(one.probability)) for one in theirs.targets
        ]
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("Asked about:")
    assert [line.split()[:2] for line in lines[at + 1 : at + 3]] == [
        [f"{one.rank:,}", one.token] for one in wanted[0].targets
    ]
    source = tmp_path / "in.jsonl"
    source.write_text('{"text_a": "the [MASK] [MASK]"}\n{"text_a": "the cat", "text_b": "it ran"}\n')
    assert main(["predict", "--input", str(source), "--quiet", "--target", "cat", "--model", str(tiny_folder)]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert [[one["token"] for one in mask["targets"]] for mask in first["masks"]] == [["cat"], ["cat"]]
    assert second["masks"] == []
    assert main(["predict", "the [MASK]", "--target", "carrots", "--model", str(tiny_folder)]) == 0
    printed = capsys.readouterr().out
    assert "pseudo-log-likelihood" in printed and "carrots" in printed
    says = "'carrots' is no token"
    assert says in _complaint(
        capsys, ["predict", "--input", source, "--target", "carrots", "--model", tiny_folder, "--quiet"]
    )
