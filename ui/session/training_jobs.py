"""Trainings started from the page: a command of `python -m bert_tf` in a process of its own, bounded by the limits.

A pause ends the process after its last step is saved, so that a paused training holds neither memory nor a core;
going on runs the same command again.
"""

import atexit
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
import streamlit as st

from bert_tf.training.run_folder import (
    METRICS,
    RunError,
    find_runs,
    read_run,
)
from ui.session import runs, state
from ui.shell.limits import OWN_PREFIX, ROOT

_NICE = 10  # the page is to stay quick while somebody trains
_BATCH, _LENGTH = 16, 64
_STOPPED = 143  # as `training.loop.STOPPED` (which would load TensorFlow): a signal from elsewhere
_DRAWS = 5  # how often the sequences of a text are counted: chance has a part in their number
_TEXT = "text.txt"


_ALL = weakref.WeakSet()


class Training:
    """One training started from the page; its methods may be called from any visitor's thread.

    Args:
        folder: of the run. arguments: of `python -m bert_tf`. seconds: it may run for.
        last_status: the status that an earlier server left it in; None to start it.

    Attributes: problem: a sentence, when it failed.
    """

    def __init__(self, folder, arguments, seconds, last_status=None):
        self.folder, self.problem = folder, None
        self._command = [sys.executable, "-m", "bert_tf", *map(str, arguments)]
        self._left, self._began, self._process, self._wish = seconds, None, None, "run"
        self._timer, self._lock, self._left_as = None, threading.Lock(), last_status
        if last_status is None:
            self.go_on()
        _ALL.add(self)

    @property
    def status(self):
        """ "running", "ending" (it saves), "paused", "stopped", "done" or "failed"."""
        with self._lock:
            if self._process is None:
                return self._left_as
            code = self._process.poll()
            if code is None:
                return "running" if self._wish == "run" else "ending"
            if self._wish != "run":
                return {"pause": "paused", "stop": "stopped"}[self._wish]
            if code == _STOPPED:
                return "stopped"
            if code:
                self.problem = self._last_line() if code > 0 else _killed(-code)
                return "failed"
            return "done"

    def go_on(self):
        """Start, or go on after a pause."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            with open(self.folder / "output.log", "a", encoding="utf-8") as log:
                self._process = subprocess.Popen(
                    self._command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
                )
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)
            self._wish, self._began = "run", time.monotonic()
            self._timer = threading.Timer(self._left, self.end, ("stop",))
            self._timer.daemon = True
            self._timer.start()

    def end(self, wish):
        """Have it save and leave. Args: wish: "pause", to go on later, or "stop"."""
        with self._lock:
            if self._process is None:
                self._left_as = "stopped" if wish == "stop" and self._left_as == "paused" else self._left_as
            elif self._process.poll() is None:
                self._timer.cancel()
                self._left = max(1.0, self._left - (time.monotonic() - self._began))
                self._process.terminate()
                self._wish = wish
            elif self._wish == "pause":
                self._wish = wish

    def kill(self):
        """End it at once; for when its files are to go or the server ends."""
        with self._lock:
            if self._process is None:
                return
            self._timer.cancel()
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def _last_line(self):
        lines = (self.folder / "output.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # Where files lie on the server is nothing for a visitor.
        said = lines[-1].rsplit("bert_tf: ", 1)[-1].replace(f"{self.folder}{os.sep}", "") if lines else ""
        return said or "It ended without a word."


def _killed(number):
    """What is said of a process that a signal has ended: it could not say anything itself."""
    why = ", as a system does that has no memory left" if number == signal.SIGKILL else ""
    return f"It was ended from outside ({signal.Signals(number).name}){why}."


@st.cache_resource(show_spinner=False)
def _started():
    return {}


def started(name):
    """The `Training` of a run that was started from the page, by this server or an earlier one; None for other runs."""
    return find_training(_started(), name, runs.folder(), _earlier)


def find_training(begun, name, home, earlier):
    """A training by its name, also one that an earlier server left.

    Args:
        begun: dict of those that this server knows, which gets it. name: of the training. home: folder of its folder.
        earlier: callable (folder) -> `Training`, or None if it cannot be taken over.
    """
    if (
        name not in begun
        and name.startswith(OWN_PREFIX)
        and state.limits().train
        and home / name in folders_started_here(home)
    ):
        found = earlier(home / name)
        if found:
            begun.setdefault(name, found)  # another visitor may have been faster
    return begun.get(name)


def fresh_name(kind=""):
    """A name for what is begun now: no other has it, and its end tells when that was."""
    return f"{OWN_PREFIX}{kind}{time.strftime('%y%m%d-%H%M')}-{secrets.token_hex(2)}"


def folders_started_here(home):
    """The folders in `home` of what was begun from the page, here or by an earlier server, the newest first."""
    if not home.is_dir():
        return []
    # By the end of their names, which is the day and the time; earlier names had no year, and so are before the others.
    return sorted(
        (path for path in home.iterdir() if path.name.startswith(OWN_PREFIX)),
        key=lambda path: path.name.split("-")[-3:],
        reverse=True,
    )


def _earlier(folder):
    try:
        run = read_run(folder)
    except RunError:
        return Training(folder, (), 0, "stopped")
    if run.is_running():
        return None  # an earlier server may have left the process as well
    if run.total is not None and run.step >= run.total:
        return Training(folder, (), 0, "done")
    seconds = 60 * state.limits().max_minutes - _seconds(run)
    told = run.settings
    if seconds <= 0 or not (folder / _TEXT).is_file() or not {"steps", "batch_size", "learning_rate"} <= told.keys():
        return Training(folder, (), 0, "stopped")
    arguments = _arguments(folder, told["steps"], told["learning_rate"], told["batch_size"], bool(told.get("init")))
    return Training(folder, arguments, seconds, "paused")


def _seconds(run):
    """How long a run has trained, by its log."""
    steps = [0, *(record["step"] for record in run.records)]
    return sum((record["step"] - before) * record["seconds_per_step"] for before, record in zip(steps, run.records))


@atexit.register
def _end_all():
    for training in list(_ALL):
        training.kill()


def running():
    """How many trainings of any kind hold a process now."""
    return sum(training.status in ("running", "ending") for training in list(_ALL))


def start(text, steps, rate, warm):
    """Begin a training on a visitor's text.

    Args:
        text: str. steps: updates. rate: learning rate. warm: whether to go on from the shipped model.

    Returns: the run's name.

    Raises: ValueError with a sentence, if the limits forbid it.
    """
    check(text, steps)
    batch = min(_BATCH, count_sequences(text))
    name = fresh_name()
    folder = runs.folder() / name
    folder.mkdir(parents=True)
    (folder / _TEXT).write_text(text, encoding="utf-8")
    (folder / METRICS).touch()
    arguments = _arguments(folder, steps, rate, batch, warm)
    _started()[name] = Training(folder, arguments, 60 * state.limits().max_minutes)
    return name


def _arguments(folder, steps, rate, batch, warm):
    """What `python -m bert_tf` is told to train, or to go on."""
    begin = (
        ["--init", shipped().snapshots[-1].folder]
        if warm
        else ["--size", "2x128x2", "--positions", 128, "--vocab", _vocabulary()]
    )
    every = max(1, steps // 100)
    options = [
        *begin,
        "--steps",
        steps,
        "--batch-size",
        batch,
        "--length",
        _LENGTH,
        "--learning-rate",
        rate,
        "--dropout",
        0,
        "--log-every",
        every,
        "--save-every",
        20 * every,
        "--threads",
        2,
        "--snapshots",
    ]
    return ["pretrain", "--text", folder / _TEXT, "--output", folder, *options]


def count_sequences(text):
    """How many sequences a text gives each time it is read, the fewest of some draws.

    Raises: ValueError with a sentence, if it gives none to learn from.
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
            "The text is one document, so nothing could be learnt of which texts belong together. Put a "
            "blank line between its parts."
        )
    return min(
        len(make_pairs("mlm+nsp", corpus, range(len(corpus)), np.random.default_rng(seed), tokenizer, _LENGTH))
        for seed in range(_DRAWS)
    )


def check(text, steps):
    """Raises ValueError, a sentence for the visitor, unless a training of this text may start now."""
    limits = state.limits()
    if not limits.train:
        raise ValueError("Training from the page is switched off here (explorer.toml, [training]).")
    if len(text) > limits.max_text:
        raise ValueError(f"The text has {len(text):,} characters; at most {limits.max_text:,} are taken here.")
    if len(text.split()) < 300:
        raise ValueError(f"The text has {len(text.split()):,} words; give at least 300, better many thousands.")
    if not 1 <= steps <= limits.max_steps:
        raise ValueError(f"{steps:,} steps were asked for; at most {limits.max_steps:,} are done here.")
    if len(folders_started_here(runs.folder())) >= limits.max_trainings:
        raise ValueError(
            f"There are {limits.max_trainings} trainings on visitors' texts here, as many as are kept; choose "
            f"one above (their names begin with {OWN_PREFIX}) and delete it first."
        )
    if running() >= limits.max_runs:
        raise ValueError("Another training is running here; pause or stop it, or wait until it is over.")


def go_on(name):
    """Go on with a paused training. Raises ValueError if too many run already."""
    if running() >= state.limits().max_runs:
        raise ValueError("Another training is running here; pause or stop it, or wait until it is over.")
    found = started(name)
    if found is None:
        raise ValueError(f"The training {name} is no longer here.")
    found.go_on()


def remove(name):
    """End a training that was started from the page and delete its files."""
    remove_training(_started(), name)


def remove_training(begun, name):
    """End a training of the dict `begun`, which loses it, and delete its files."""
    training = begun.pop(name, None)
    if training is None:
        return  # another visitor was faster
    training.kill()
    shutil.rmtree(training.folder, ignore_errors=True)


def shipped():
    """The run that ships, or None where it is not there."""
    return next((run for run in map(read_run, find_runs(runs.SHIPPED)) if run.snapshots), None)


def _vocabulary():
    """Folder of the vocabulary that fresh models get: the shipped run's, or the default model's."""
    from bert_tf.checkpoints import find

    run = shipped()
    return run.snapshots[0].folder if run else find(state.limits().default)
