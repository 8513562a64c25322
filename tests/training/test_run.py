"""A run's folder read back, whole, half written and damaged."""

import json
import subprocess
import sys

import pytest

from bert_tf.training.logs.run_log import RunLog
from bert_tf.training.run_folder import RunError, find_runs, read_run


def write(folder, lines, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("\n".join(lines))
    (folder / "settings.json").write_text(json.dumps({"settings": settings, "corpus": {"documents": 3}}))
    return folder


def line(step, **values):
    return json.dumps({"step": step, "loss": 10.0 - step / 10, **values})


def test_a_run_says_how_far_it_is(tmp_path):
    folder = write(tmp_path / "run", [line(10, mlm_accuracy=0.1), line(20), ""], steps=50, seed=1)
    for name in ("step-0", "step-10", "step-2", ".step-20.part"):
        (folder / "snapshots" / name).mkdir(parents=True)
    run = read_run(folder)
    assert (run.name, run.step, run.total, run.text["documents"]) == ("run", 20, 50, 3)
    assert run.curve("loss") == ([10, 20], [9.0, 8.0]) and run.curve("mlm_accuracy") == ([10], [0.1])
    assert [snapshot.step for snapshot in run.snapshots] == [0, 2, 10]


def test_a_resumed_run_counts_no_step_twice(tmp_path):
    lines = [line(10), line(20), line(30), line(20, loss=1.0), line(30, loss=0.5)]
    assert read_run(write(tmp_path / "run", lines)).curve("loss") == ([10, 20, 30], [9.0, 1.0, 0.5])


def test_a_line_half_written_waits_and_a_damaged_one_is_named(tmp_path):
    assert read_run(write(tmp_path / "a", [line(10), '{"step": 20, "lo'])).step == 10
    with pytest.raises(RunError, match="metrics.jsonl, line 1"):
        read_run(write(tmp_path / "b", ['{"step": 2', line(10)]))


def test_a_log_that_a_full_disk_cut_goes_on_with_whole_lines(tmp_path):
    folder = write(tmp_path / "run", [line(10), '{"step": 20, "lo'])
    with RunLog(folder) as log:
        log.write({"step": 20, "loss": 1.0})
    assert read_run(folder).curve("loss") == ([10, 20], [9.0, 1.0])
    with RunLog(folder) as log:
        log.write({"step": 30, "loss": 0.5})
    assert [json.loads(one)["step"] for one in open(folder / "metrics.jsonl")] == [10, 20, 30]


def test_runs_are_found_and_other_folders_are_not(tmp_path):
    write(tmp_path / "b", [line(1)])
    write(tmp_path / "a", [])
    (tmp_path / "other").mkdir()
    assert [path.name for path in find_runs(tmp_path)] == ["a", "b"] and find_runs(tmp_path / "none") == []
    assert read_run(tmp_path / "a").step == 0
    with pytest.raises(RunError, match="other holds no metrics.jsonl"):
        read_run(tmp_path / "other")


def test_reading_a_run_takes_no_tensorflow():
    code = "import sys, bert_tf.training.run_folder; sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
