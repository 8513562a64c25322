"""Trainings started from the page: each runs a command of `python -m bert_tf` in a process, within the limits.

A pause ends the process after it has saved its last step, so a paused training uses neither memory nor a core. To
resume it, the same command runs again.
"""

import atexit
import contextlib
import io
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np

from bert_tf.checkpoints import models_dir
from bert_tf.files import entries
from bert_tf.startup import lower_priority
from bert_tf.training.run_folder import METRICS, RunError, find_runs, read_run
from ui import ownership
from ui.server import allocator
from ui.session import runs, state
from ui.shell.limits import OWN_PREFIX, ROOT
from ui.shell.processes import ask_to_end, find_process, may_run, read_process, write_process
from ui.shell.server_cache import server_cache

# On Windows: as `lower_priority` elsewhere, and a group of its own, to which a signal can be sent. 0 on other systems.
_WINDOWS_FLAGS = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0) | getattr(
    subprocess, "CREATE_NEW_PROCESS_GROUP", 0
)
_BATCH, _LENGTH = 16, 64
_STOPPED = 143  # exit code after a signal; the same as `training.loop.STOPPED`, whose import would load TensorFlow
_ERRORS = (1, 2)  # exit codes of a command that has written an error message
_PATIENCE = 300.0  # seconds in which a process that was asked to end saves its last step; then it is killed
_DRAWS = 5  # the number of times that the sequences of a text are counted, as their number is partly random
_TEXT = "text.txt"
_PROCESS = "process.json"  # in a training's folder: the identity of its process, its command and when its time is over
_LOCK = ".trainings.lock"  # in the models folder: held while a training is checked and started, or taken over
_ALL = weakref.WeakSet()  # the trainings that this server knows


class Training:
    """One training started from the page; the threads of all visitors may call its methods.

    Args:
        folder: of the run. arguments: of `python -m bert_tf`. seconds: the time limit of the training.
        last_status: the status of a training of an earlier server; None starts the training.
        file_names: dict from names of files in the folder to the visitor's names for them, for error messages.

    Attributes:
        problem: a sentence for the visitor if the training failed, else None.
        owner: of the folder, for `ownership.is_visitor`; known also when the folder is deleted.
        began: the moment of its last start on this server, by the monotonic clock; None if it has none.
    """

    def __init__(self, folder, arguments, seconds, last_status=None, file_names=None):
        self.folder, self.problem, self._file_names = folder, None, file_names or {}
        self.owner = ownership.owner(folder)
        self._command = [sys.executable, "-m", "bert_tf", *map(str, arguments)]
        self._left, self.began, self._process, self._wish = seconds, None, None, "run"
        self._timer, self._lock, self._left_as = None, threading.Lock(), last_status
        self._read_status = None
        if last_status is None:
            self.go_on()
        _ALL.add(self)

    @property
    def status(self):
        """ "running", "ending" (it saves its last step), "paused", "stopped", "done" or "failed"."""
        with self._lock:
            if self._process is None:
                return self._left_as
            code = self._process.poll()
            if code is None:
                return "running" if self._wish == "run" else "ending"
            if self._wish == "run" and code == "unknown":
                return self._read_status()
            if code == 0:  # also if it ended by itself just before it was asked to
                return "done"
            if code == _STOPPED or (self._wish != "run" and code not in _ERRORS):
                return "paused" if self._wish == "pause" else "stopped"
            # Read once: the files of a failed training may be deleted.
            self.problem = self.problem or (self._last_line() if code > 0 else _killed(-code))
            return "failed"

    def go_on(self):
        """Start the training, or resume it after a pause."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self.problem = None
            with open(self.folder / "output.log", "a", encoding="utf-8") as log:
                process = subprocess.Popen(
                    self._command,
                    cwd=ROOT,
                    # Where it runs, a relative folder would be another one.
                    env={**allocator.environment_of_child(), "BERT_TF_HOME": str(models_dir())},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    creationflags=_WINDOWS_FLAGS,
                )
            ends = time.time() + self._left
            try:
                if hasattr(os, "setpriority"):  # not on Windows
                    lower_priority(process.pid)
                write_process(self.folder / _PROCESS, process.pid, arguments=self._command[3:], ends=ends)
            except OSError:
                process.kill()  # no server would find it again
                process.wait()
                raise
            self._process = process
            self._watch_time()

    def adopt(self, process, read_status):
        """Take over a process that another server has started.

        Args:
            process: ``FoundProcess``. read_status: callable () -> the status after its end, read from its files.
        """
        with self._lock:
            self._process, self._read_status = process, read_status
            self._watch_time()

    def _watch_time(self):
        if self._timer is not None:
            self._timer.cancel()
        self._wish, self.began = "run", time.monotonic()
        self._call_later(self._left, self._end_in_time)

    def _call_later(self, seconds, function):
        self._timer = threading.Timer(seconds, function, (self._process,))
        self._timer.daemon = True
        self._timer.start()

    def _end_in_time(self, process):
        """The time of a process is over. One that has ended by itself stays what it is: done or paused."""
        if process.poll() is None:
            self.end("stop")

    def _kill_hanging(self, process):
        """A process that does not end would keep its place on this server for ever."""
        if process.poll() is None:
            process.kill()

    def end(self, wish):
        """Let the process save its last step and end.

        Args:
            wish: "pause", to resume the training later, or "stop".
        """
        with self._lock:
            if self._process is None:
                self._left_as = "stopped" if wish == "stop" and self._left_as == "paused" else self._left_as
            elif self._process.poll() is None:
                self._timer.cancel()
                self._left = max(1.0, self._left - (time.monotonic() - self.began))
                ask_to_end(self._process)
                self._wish = wish
                self._call_later(_PATIENCE, self._kill_hanging)
            elif self._wish == "pause" or (wish == "stop" and self._process.poll() == "unknown"):
                self._wish = wish

    def kill(self):
        """End the process at once, before its files are deleted."""
        with self._lock:
            if self._process is None:
                return
            self._timer.cancel()
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def leave(self):
        """Tell a process that this server has started to save and end, without waiting for it."""
        if isinstance(self._process, subprocess.Popen):
            self.end("pause")

    def _last_line(self):
        try:
            lines = (self.folder / "output.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            lines = []  # another visitor has deleted the training
        # A visitor must not see the paths of the server.
        message = lines[-1].rsplit("bert_tf: ", 1)[-1].replace(f"{self.folder}{os.sep}", "") if lines else ""
        for stored_name, original in self._file_names.items():
            message = message.replace(stored_name, original)
        return message or "The training ended without an error message."


def _killed(number):
    """The error message for a process that a signal has ended, as it could not write one."""
    reason = "; the system does this when no memory is left" if number == getattr(signal, "SIGKILL", None) else ""
    return f"The training was ended from outside ({signal.Signals(number).name}){reason}."


@server_cache
def _started():
    return {}


def started(name):
    """The `Training` of a run that was started from the page, on this server or an earlier one; None for other runs."""
    return find_training(_started(), name, runs.folder(), _earlier)


def find_training(begun, name, home, earlier):
    """The `Training` of a name, also of a training of an earlier server; None if there is none.

    Args:
        begun: dict from names to the trainings that this server knows; one of an earlier server is added to it.
        name: of the training. home: the folder that contains the training's folder.
        earlier: callable (folder) -> `Training` of an earlier server, or None if this server cannot take it over.
    """
    if (
        name not in begun
        and name.startswith(OWN_PREFIX)
        and state.limits().train
        and home / name in folders_started_here(home)
    ):
        with _start_lock():  # a training that starts at this moment looks like one of an earlier server
            training = None if name in begun else earlier(home / name)
        if training:
            begun.setdefault(name, training)  # the thread of another visitor may have added it already
    return begun.get(name)


def discard_failed_trainings(begun, holds_work=lambda folder: False):
    """Delete the files of trainings that failed; their error message stays in memory, for whoever started them.

    Args:
        begun: dict from names to the trainings that this server knows.
        holds_work: callable (folder) -> whether a training has saved something, which is kept.
    """
    for training in list(begun.values()):
        if training.status == "failed" and not holds_work(training.folder):
            shutil.rmtree(training.folder, ignore_errors=True)


def problem_of(begun, name):
    """The error message of a training in the dict `begun` that failed, else None."""
    training = begun.get(name)
    return training.problem if training and training.status == "failed" else None


def last_started_in(begun):
    """The name of the training in the dict `begun` that this visitor started or resumed last, else None."""
    own = {name: training.began for name, training in list(begun.items()) if ownership.is_visitor(training.owner)}
    return max((name for name, began in own.items() if began is not None), key=own.get, default=None)


def last_started():
    """The name of the run that this visitor started or resumed last on this server, also in an earlier visit."""
    return last_started_in(_started())


def discard_failed():
    """Delete the files of runs that failed before they saved a trained model."""
    discard_failed_trainings(_started(), has_trained_model)


def has_trained_model(folder):
    """Whether a run has saved a model after its first step."""
    try:
        return any(snapshot.step for snapshot in read_run(folder).snapshots)
    except RunError:
        return False


def problem(name):
    """The error message of a run that was started on this server and failed, else None."""
    return problem_of(_started(), name)


def fresh_name(kind=""):
    """A new and unique name for a training; it ends with the date, the time and a random part."""
    return f"{OWN_PREFIX}{kind}{time.strftime('%y%m%d-%H%M')}-{secrets.token_hex(2)}"


def folders_started_here(home):
    """The folders in `home` of trainings that were started from the page, on this server or an earlier one.

    The newest comes first.
    """
    # Sorted by the end of the names, the date and the time. Old names have no year, so they count as older.
    return sorted(
        (path for path in entries(home) if path.name.startswith(OWN_PREFIX)),
        key=lambda path: path.name.split("-")[-3:],
        reverse=True,
    )


def adopted(folder, read_status):
    """The `Training` of a process that still runs though its server has ended, or None.

    Args:
        folder: of the training. read_status: callable () -> the status after its end, read from its files.
    """
    process, values = find_process(folder / _PROCESS), read_process(folder / _PROCESS)
    if process is None:
        return None
    training = Training(folder, values["arguments"], max(1.0, values["ends"] - time.time()), "stopped")
    training.adopt(process, read_status)
    return training


def may_run_elsewhere(folder, run):
    """Whether a `Run` may have a process that wrote no file about itself, as its log is young."""
    return run.is_running() and read_process(folder / _PROCESS) is None


def _earlier(folder):
    return adopted(folder, lambda: _from_files(folder).status) or _from_files(folder)


def _from_files(folder):
    try:
        run = read_run(folder)
    except RunError:
        return Training(folder, (), 0, "stopped")
    if may_run_elsewhere(folder, run):
        return None
    if run.total is not None and run.step >= run.total:
        return Training(folder, (), 0, "done")
    seconds = 60 * state.limits().max_minutes - _seconds(run)
    settings, needed = run.settings, {"steps", "batch_size", "learning_rate"}
    if seconds <= 0 or not (folder / _TEXT).is_file() or not needed <= settings.keys():
        return Training(folder, (), 0, "stopped")
    arguments = _arguments(
        folder, settings["steps"], settings["learning_rate"], settings["batch_size"], bool(settings.get("init"))
    )
    return Training(folder, arguments, seconds, "paused")


def _seconds(run):
    """The seconds that a run has trained, read from its log."""
    steps = [0, *(record["step"] for record in run.records)]
    return sum((record["step"] - before) * record["seconds_per_step"] for before, record in zip(steps, run.records))


@atexit.register
def leave_all():
    """Tell all trainings that this server has started to save and end, before the server ends."""
    for training in list(_ALL):
        training.leave()


def running():
    """The number of trainings of any kind whose process runs now, also of those that another server has started."""
    folders = {path for home in (runs.folder(), models_dir()) for path in folders_started_here(home)}
    return sum(map(runs_in, folders))


def runs_in(folder):
    """Whether the process of the training in a folder runs now.

    Where processes have no start time (Windows), a process with its number counts until the time of the training is
    over: later the number may be that of another process.
    """
    if find_process(folder / _PROCESS) is not None:
        return True
    values = read_process(folder / _PROCESS) or {}
    return values.get("ends", 0) > time.time() and may_run(values)


@contextlib.contextmanager
def one_start(check):
    """Let only one thread of one server check that a training may start, and start it.

    Two visitors who press the button at the same moment, or on two servers, would both pass the check otherwise.

    Args:
        check: callable () that raises a ValueError if no training may start.
    """
    with _start_lock():
        check()
        yield


def _start_lock():
    """The lock of all servers with this models folder for a start; whoever holds it must not ask for it again."""
    from filelock import FileLock

    home = models_dir()
    home.mkdir(parents=True, exist_ok=True)
    return FileLock(home / _LOCK)


@contextlib.contextmanager
def new_folder(folder):
    """Make the folder of a training that this visitor starts; if the training does not start, it is deleted."""
    folder.mkdir(parents=True)
    try:
        ownership.sign(folder)
        yield
    except BaseException:  # also Streamlit's signal that the visitor's next press cuts off this run of the page
        shutil.rmtree(folder, ignore_errors=True)
        raise


def start(text, steps, rate, warm):
    """Start a training on a visitor's text.

    Args:
        text: str. steps: number of updates. rate: learning rate.
        warm: whether to start from the shipped model instead of random weights.

    Returns:
        the run's name.

    Raises:
        ValueError: the text cannot be used or a limit is exceeded; the message is for the visitor.
    """
    check(text, steps)
    batch = min(_BATCH, count_sequences(text))
    with one_start(_check_number):
        name = fresh_name()
        folder = runs.folder() / name
        with new_folder(folder):
            (folder / _TEXT).write_text(text, encoding="utf-8")
            (folder / METRICS).touch()
            arguments = _arguments(folder, steps, rate, batch, warm)
            _started()[name] = Training(folder, arguments, 60 * state.limits().max_minutes)
    return name


def _arguments(folder, steps, rate, batch, warm):
    """The arguments of `python -m bert_tf` that start or resume a training."""
    every = max(1, steps // 100)
    options = ["--text", folder / _TEXT, "--output", folder, "--steps", steps, "--batch-size", batch]
    if warm:
        options += ["--init", shipped().snapshots[-1].folder]
    else:
        options += ["--size", "2x128x2", "--positions", 128, "--vocab", _vocabulary()]
    options += ["--length", _LENGTH, "--learning-rate", rate, "--dropout", 0, "--threads", 2]
    options += ["--log-every", every, "--save-every", 20 * every, "--snapshots"]
    return ["pretrain", *options]


def count_sequences(text):
    """The number of sequences that a text gives in one epoch, the smallest of ``_DRAWS`` random draws.

    Raises:
        ValueError: the text has only one document; the message is for the visitor.
    """
    from bert_tf.pretraining.data.corpus import MemoryCorpus, tokenize_documents
    from bert_tf.pretraining.data.documents import read_documents
    from bert_tf.pretraining.data.packing import make_pairs
    from bert_tf.tokenizers import read_tokenizer

    tokenizer, content = read_tokenizer(_vocabulary()), text.encode("utf-8")
    documents = list(read_documents([_TEXT], open_file=lambda *_: io.BytesIO(content)))
    corpus = MemoryCorpus(tokenize_documents(documents, tokenizer))
    if len(corpus) < 2:
        raise ValueError(
            "The text is one document, so the model cannot learn which texts follow each other. Put a blank line "
            "between its parts."
        )
    return min(
        len(make_pairs("mlm+nsp", corpus, range(len(corpus)), np.random.default_rng(seed), tokenizer, _LENGTH))
        for seed in range(_DRAWS)
    )


def check_switched_on():
    """Raise ValueError, with a message for the visitor, if nobody may train from the page."""
    if not state.limits().train:
        raise ValueError("Training from the page is switched off here (explorer.toml, [training]).")


def check(text, steps):
    """Check that a training on this text may start now.

    Raises:
        ValueError: it may not; the message is for the visitor.
    """
    check_switched_on()
    limits = state.limits()
    if len(text) > limits.max_text:
        raise ValueError(f"The text has {len(text):,} characters; at most {limits.max_text:,} are allowed here.")
    if len(text.split()) < 300:
        raise ValueError(f"The text has {len(text.split()):,} words; give at least 300, better many thousands.")
    if not 1 <= steps <= limits.max_steps:
        raise ValueError(f"The number of steps must be 1 to {limits.max_steps:,} here, not {steps:,}.")
    _check_number()


def _check_number():
    discard_failed()
    limits = state.limits()
    if len(folders_started_here(runs.folder())) >= limits.max_trainings:
        raise ValueError(
            f"There are {limits.max_trainings} trainings on visitors' texts here, the largest number allowed; choose "
            f"one above (their names begin with {OWN_PREFIX}) and delete it first.{ownership.others_stay()}"
        )
    _check_running()


def _check_running():
    if running() >= state.limits().max_runs:
        raise ValueError("Another training is running here; pause or stop it, or wait until it ends.")


def go_on(name):
    """Resume a paused training.

    Raises:
        ValueError: too many trainings run already, or the training was deleted; the message is for the visitor.
    """
    started(name)  # before the start: a training of an earlier server is taken over under the same lock
    with one_start(_check_running):
        training = _started().get(name)
        if training is None:
            raise ValueError(f"The training {name} was deleted.")
        training.go_on()


def remove(name):
    """End a training that was started from the page, and delete its files."""
    remove_training(_started(), name)


def remove_training(begun, name):
    """End a training, remove it from the dict `begun` and delete its files."""
    training = begun.pop(name, None)
    if training is None:
        return  # another visitor has removed it already
    training.kill()
    shutil.rmtree(training.folder, ignore_errors=True)


def shipped():
    """The shipped run, or None if it is not installed."""
    return next((run for run in map(read_run, find_runs(runs.SHIPPED)) if run.snapshots), None)


def _vocabulary():
    """The folder with the vocabulary of new models: the shipped run's, or the default model's."""
    from bert_tf.checkpoints import find

    run = shipped()
    return run.snapshots[0].folder if run else find(state.limits().default)
