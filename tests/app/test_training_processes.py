"""The processes of trainings: how many run at once, and what a restarted server does with those it finds."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

from tests.app.page_reading import page_text
from ui.session import finetuning_jobs, model_store, runs, state, training_jobs
from ui.shell import processes as processes_module
from ui.shell.processes import find_process, write_process

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120
TEXT = "\n\n".join(["the cat sat on the mat . she ran in the park . " * 4] * 20)
EXAMPLES = b"text,label\n" + b"".join(b"good film %d,1\nbad film %d,0\n" % (number, number) for number in range(20))
#: In place of Python: it takes the arguments of a training, runs until it is told to end, and says that it was stopped.
COMMAND = "#!/bin/sh\ntrap 'exit 143' TERM\nwhile :; do sleep 0.05; done\n"


@pytest.fixture(autouse=True)
def home(environment, tmp_path, explorer_home, monkeypatch):
    """A models folder of its own, and a command in place of the trainings."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("tiny-cased", "tiny-uncased"):
        (folder / name).symlink_to(explorer_home / name)
    command = tmp_path / "training"
    command.write_text(COMMAND)
    command.chmod(0o755)
    monkeypatch.setenv("BERT_TF_HOME", str(folder))
    monkeypatch.setattr(training_jobs, "sys", types.SimpleNamespace(executable=str(command)))
    monkeypatch.setattr(training_jobs, "_started", lambda known={}: known)
    yield folder
    for path in folder.rglob("process.json"):
        if process := find_process(path):
            process.kill()
    for begun in (training_jobs._started(), finetuning_jobs._started()):
        for training in begun.values():
            training.kill()
        begun.clear()


def start():
    return training_jobs.start(TEXT, 10, 1e-3, False)


def start_one_that_ends_by(end, tmp_path):
    """Start a training that runs the commands `end` when it is told to end, and wait until it would."""
    is_set = tmp_path / "trap-is-set"
    (tmp_path / "training").write_text(f"#!/bin/sh\ntrap '{end}' TERM\n: > '{is_set}'\nwhile :; do sleep 0.05; done\n")
    name, patience_ends = start(), time.monotonic() + PATIENCE
    while not is_set.exists():
        assert time.monotonic() < patience_ends
        time.sleep(0.02)
    return name


def start_a_fine_tuning():
    return finetuning_jobs.start("classify", "films.csv", EXAMPLES, "tiny-cased", 1, True)


def on_another_server(home, code):
    """Run lines of code in a process of its own, as another server would; returns what it printed."""
    script = (
        "import os, signal, sys, types\n"
        "from ui.session import training_jobs\n"
        f"training_jobs.sys = types.SimpleNamespace(executable={training_jobs.sys.executable!r})\n" + code
    )
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def left_behind(home):
    """The name of a training whose server was killed."""
    code = f"print(training_jobs.start({TEXT!r}, 10, 1e-3, False), flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    name = on_another_server(home, code).communicate(timeout=PATIENCE)[0].strip().splitlines()[-1]
    assert name.startswith("own-")
    return name


def write_settings(folder):
    """Write the settings of a run that can be resumed, as its process would."""
    settings = {"steps": 10, "batch_size": 4, "learning_rate": 1e-3}
    (folder / "settings.json").write_text(json.dumps({"settings": settings}))


def until(name, *wanted, of=training_jobs):
    end = time.monotonic() + PATIENCE
    while (status := of.started(name).status) not in wanted:
        assert time.monotonic() < end, status
        time.sleep(0.02)


def processes(home):
    return [path for path in home.rglob("process.json") if find_process(path)]


def test_twelve_visitors_who_press_train_at_once_start_one_training(home):
    together, refused = threading.Barrier(12), []

    def press(number):
        together.wait()
        try:
            start() if number % 2 else start_a_fine_tuning()
        except ValueError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=press, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(refused) == 11 and all("Another training is running here" in sentence for sentence in refused)
    assert len(processes(home)) == 1 and training_jobs.running() == 1
    assert len([*home.glob("own-*"), *home.glob("runs/own-*")]) == 1


@pytest.mark.parametrize("begin", [start, start_a_fine_tuning])
def test_a_start_on_a_full_disk_leaves_neither_folder_nor_process(home, begin, monkeypatch):
    started = []

    def write(path, pid, **more):
        started.append(pid)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(training_jobs, "write_process", write)
    with pytest.raises(OSError, match="No space left"):
        begin()
    assert not [*home.glob("own-*"), *home.glob("runs/own-*")]
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


@pytest.mark.parametrize("begin", [start, start_a_fine_tuning])
def test_a_start_without_the_right_to_set_a_priority_leaves_neither_folder_nor_process(home, begin, monkeypatch):
    started = []

    def refuse(which, process, priority):
        started.append(process)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "setpriority", refuse)
    with pytest.raises(PermissionError):
        begin()
    assert not [*home.glob("own-*"), *home.glob("runs/own-*")]
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


@pytest.mark.parametrize("own, expected", [(0, 10), (15, 15)])
def test_a_training_gets_no_higher_priority_than_its_server_has(home, monkeypatch, own, expected):
    priorities = []
    monkeypatch.setattr(os, "getpriority", lambda which, process: own)
    monkeypatch.setattr(os, "setpriority", lambda which, process, priority: priorities.append(priority))
    start()
    assert priorities == [expected]


def test_a_model_is_offered_and_its_file_deleted_when_its_training_has_ended(home):
    name = start_a_fine_tuning()
    shutil.copytree(home / "tiny-cased", home / name, dirs_exist_ok=True)  # the best model so far
    checkpoints = home / name / "run" / "checkpoints"
    (checkpoints / "step-1").mkdir(parents=True)

    def offered():
        model_store.catalogue.clear()
        return name in {info.name for info in model_store.installed()}

    assert finetuning_jobs.names() == [name] and not offered() and (home / name / "task-input.csv").exists()
    assert checkpoints.exists()
    finetuning_jobs.started(name).end("stop")
    until(name, "stopped", of=finetuning_jobs)
    assert finetuning_jobs.names() == [name] and offered() and not (home / name / "task-input.csv").exists()
    assert not checkpoints.exists()


def test_a_fine_tuning_that_fails_after_it_has_saved_a_model_is_kept(home, open_app):
    app = open_app(page="fine_tune")
    name = start_a_fine_tuning()
    shutil.copytree(home / "tiny-cased", home / name, dirs_exist_ok=True)
    training = finetuning_jobs.started(name)
    training._process.kill()
    until(name, "failed", of=finetuning_jobs)
    assert not finetuning_jobs.has_model(name)  # it was cut while its model was written
    (home / name / "task.json").write_text(json.dumps({"task": "classify", "labels": ["0", "1"], "metric": "accuracy"}))
    assert finetuning_jobs.has_model(name) and finetuning_jobs.names() == [name]
    app.run()
    assert not app.exception and "**Failed.**" in page_text(app)
    assert app.button(key="w_fine_tune_try") and "The best model of the evaluations" in page_text(app)
    (home / name / "task.json").unlink()
    assert finetuning_jobs.names() == [] and not (home / name).exists()


def test_a_fine_tuning_that_another_visitor_deletes_at_this_moment_is_no_error(open_app, monkeypatch):
    name = start_a_fine_tuning()
    monkeypatch.setattr(finetuning_jobs, "names", lambda: [name])
    monkeypatch.setattr(finetuning_jobs, "started", lambda name: None)
    monkeypatch.setattr(state, "rerun", lambda: None)  # it would draw the page without the training
    assert not open_app(page="fine_tune").exception


@pytest.mark.parametrize(
    "end, status, problem",
    [
        ('echo "bert_tf: The checkpoint was not written: the disk is full."; exit 2', "failed", "the disk is full"),
        ("exit 0", "done", None),
        ("exit 130", "paused", None),
    ],
)
def test_a_training_that_cannot_pause_says_why(home, tmp_path, end, status, problem):
    name = start_one_that_ends_by(end, tmp_path)
    training = training_jobs.started(name)
    training.end("pause")
    until(name, status)
    assert problem in training.problem if problem else training.problem is None


def test_a_visitor_who_opens_the_page_during_a_start_does_not_delete_its_file(home, monkeypatch):
    opened, write = [], training_jobs.write_process

    def write_while_another_visitor_opens_the_page(path, pid, **more):
        opened.append(threading.Thread(target=finetuning_jobs.names))
        opened[0].start()
        opened[0].join(0.5)  # that visitor waits until the training has started
        write(path, pid, **more)

    monkeypatch.setattr(training_jobs, "write_process", write_while_another_visitor_opens_the_page)
    name = start_a_fine_tuning()
    opened[0].join(PATIENCE)
    assert (home / name / "task-input.csv").exists() and finetuning_jobs.started(name).status == "running"


def test_servers_that_share_a_folder_start_one_training(home, tmp_path):
    begin = tmp_path / "begin"
    code = (
        f"import time\nwhile not os.path.exists({str(begin)!r}): time.sleep(0.01)\n"
        f"try: training_jobs.start({TEXT!r}, 10, 1e-3, False); print('started')\n"
        "except ValueError as error: print(error)\nsys.stdout.flush(); os._exit(0)"
    )
    servers = [on_another_server(home, code) for _ in range(3)]
    begin.touch()
    output = sorted(server.communicate(timeout=PATIENCE)[0].strip().splitlines()[-1] for server in servers)
    assert [sentence[:24] for sentence in output] == ["Another training is runn"] * 2 + ["started"]
    assert len(processes(home)) == 1


def test_a_training_of_a_killed_server_counts_and_is_shown(left_behind, open_app):
    assert training_jobs.running() == 1
    with pytest.raises(ValueError, match="Another training is running here"):
        start()
    app = open_app(page="training_curves", **{"training_curves.run": left_behind})
    buttons = [button.label for button in app.button if button.key.startswith("w_training_curves_")]
    assert not app.exception and buttons[:2] == ["Pause", "Stop"]


def test_a_training_of_a_killed_server_is_paused_resumed_and_stopped(left_behind, home):
    until(left_behind, "running")
    training_jobs.started(left_behind).end("pause")
    until(left_behind, "paused")
    assert not processes(home) and training_jobs.running() == 0
    training_jobs.go_on(left_behind)
    assert training_jobs.started(left_behind).status == "running" and training_jobs.running() == 1
    command = json.loads((runs.folder() / left_behind / "process.json").read_text())["arguments"]
    assert command[0] == "pretrain" and command[command.index("--steps") + 1] == "10"
    training_jobs.started(left_behind).end("stop")
    until(left_behind, "stopped")


def test_a_training_of_a_killed_server_is_deleted_with_its_process(left_behind, home):
    until(left_behind, "running")
    training_jobs.remove(left_behind)
    assert not processes(home) and not (runs.folder() / left_behind).exists()


def test_a_training_of_a_killed_server_keeps_its_time_limit(left_behind):
    path = runs.folder() / left_behind / "process.json"
    values = json.loads(path.read_text())
    assert values["ends"] - time.time() == pytest.approx(60 * state.limits().max_minutes, abs=PATIENCE)
    path.write_text(json.dumps({**values, "ends": time.time() - 5}))
    until(left_behind, "stopped")


def test_a_training_of_a_killed_server_that_ends_later_is_read_from_its_files(left_behind):
    until(left_behind, "running")
    folder = runs.folder() / left_behind
    record = {"step": 10, "loss": 1.0, "seconds_per_step": 1.0, "time": time.time()}
    (folder / "metrics.jsonl").write_text(json.dumps(record))
    (folder / "settings.json").write_text(json.dumps({"settings": {"steps": 10}}))
    find_process(folder / "process.json").kill()
    until(left_behind, "done")


@pytest.mark.parametrize("step, status", [(10, "done"), (5, "paused")])
def test_a_training_of_a_killed_server_that_has_ended_stays_so_when_its_time_is_over(left_behind, step, status):
    folder = runs.folder() / left_behind
    record = {"step": step, "loss": 1.0, "seconds_per_step": 1.0, "time": time.time()}
    (folder / "metrics.jsonl").write_text(json.dumps(record))
    write_settings(folder)
    values = json.loads((folder / "process.json").read_text())
    (folder / "process.json").write_text(json.dumps({**values, "ends": time.time() + 2}))
    training = training_jobs.started(left_behind)
    find_process(folder / "process.json").kill()
    until(left_behind, status)
    time.sleep(2.5)
    assert training.status == status


def test_a_training_that_is_resumed_after_its_server_has_ended_is_not_stopped_by_its_old_time(left_behind):
    folder = runs.folder() / left_behind
    write_settings(folder)
    training = training_jobs.started(left_behind)
    first = training._timer
    find_process(folder / "process.json").kill()
    until(left_behind, "paused")
    training_jobs.go_on(left_behind)
    first.function(*first.args)  # the time is over
    assert training.status == "running"


def test_a_training_that_does_not_end_is_killed_after_some_minutes(home, tmp_path, monkeypatch):
    monkeypatch.setattr(training_jobs, "_PATIENCE", 0.5)
    name = start_one_that_ends_by("", tmp_path)
    training_jobs.started(name).end("pause")
    assert training_jobs.started(name).status == "ending"
    until(name, "paused")
    assert not processes(home)


def test_a_fine_tuning_of_a_killed_server_is_shown_and_stopped(home, open_app):
    code = (
        "from ui.session import finetuning_jobs\n"
        f"print(finetuning_jobs.start('classify', 'films.csv', {EXAMPLES!r}, 'tiny-cased', 1, True), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    name = on_another_server(home, code).communicate(timeout=PATIENCE)[0].strip().splitlines()[-1]
    assert finetuning_jobs.names() == [name] and list((home / name).glob("task-input.*"))
    app = open_app(page="fine_tune")
    app.button(key="w_fine_tune_stop").click().run()
    assert not app.exception
    until(name, "stopped", of=finetuning_jobs)
    assert not processes(home)


def test_another_process_with_the_number_of_a_training_is_not_taken_for_it(tmp_path):
    path = tmp_path / "process.json"
    write_process(path, os.getpid())
    assert find_process(path).pid == os.getpid()
    path.write_text(re.sub(r'"started": ".*?"', '"started": "1"', path.read_text()))
    assert find_process(path) is None


def test_a_process_is_found_by_a_server_with_another_language_and_time_zone(tmp_path, monkeypatch):
    """Where there is no /proc (macOS), `ps` writes the start time for the language and the time zone of the server."""
    command = tmp_path / "ps"
    command.write_text('#!/bin/sh\necho "Ss  $LC_ALL $TZ"\n')
    command.chmod(0o755)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for language, zone in (("C", "UTC"), ("de_DE.UTF-8", "Asia/Tokyo")):
        monkeypatch.setenv("LC_ALL", language)
        monkeypatch.setenv("TZ", zone)
        if zone == "UTC":
            write_process(tmp_path / "process.json", os.getpid())
    assert find_process(tmp_path / "process.json").pid == os.getpid()


@pytest.mark.parametrize("begin", [start, start_a_fine_tuning])
def test_a_training_counts_where_its_start_time_is_not_known(home, begin, monkeypatch):
    monkeypatch.setattr(processes_module, "_start_time", lambda pid: None)  # as on Windows
    name = begin()
    with pytest.raises(ValueError, match="Another training is running here"):
        start()
    (path,) = home.rglob("process.json")
    values = json.loads(path.read_text())
    assert values["started"] is None and find_process(path) is None and training_jobs.running() == 1
    path.write_text(json.dumps({**values, "ends": time.time() - 1}))
    assert training_jobs.running() == 0  # the number may be that of another process since
    path.write_text(json.dumps(values))
    (finetuning_jobs if begin is start_a_fine_tuning else training_jobs).started(name).kill()
    assert training_jobs.running() == 0


def test_a_process_that_nobody_has_waited_for_counts_as_ended(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write_process(tmp_path / "process.json", child.pid)
    actual = find_process(tmp_path / "process.json")
    os.kill(child.pid, signal.SIGKILL)
    actual.wait()
    assert actual.poll() == "unknown" and find_process(tmp_path / "process.json") is None
    child.wait()


def test_a_server_that_ends_tells_its_trainings_to_save(home):
    code = f"print(training_jobs.start({TEXT!r}, 10, 1e-3, False), flush=True)"
    server = on_another_server(home, code)
    name = server.communicate(timeout=PATIENCE)[0].strip().splitlines()[-1]
    process = find_process(runs.folder() / name / "process.json")
    if process:
        process.wait()
    assert training_jobs.running() == 0
