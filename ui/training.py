"""Trainings started from the page: a command of `python -m bert_tf` in a process of its own, bounded by the limits.

A pause ends the process after its last step is saved, so that a paused training holds neither memory nor a core;
going on runs the same command again.
"""

import atexit
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
import weakref

import streamlit as st

from bert_tf.train.run import METRICS, read_run
from ui import runs, state
from ui.limits import ROOT

_NICE = 10  # the page is to stay quick while somebody trains
_BATCH, _LENGTH = 16, 64
_STOPPED = 143  # as `train.loop.STOPPED` (which would load TensorFlow): a signal from elsewhere


_ALL = weakref.WeakSet()


class Training:
    """One training started here; its methods may be called from any visitor's thread.

    Args:
        folder: of the run. arguments: of `python -m bert_tf`. seconds: it may run for.

    Attributes: problem: a sentence, when it failed.
    """

    def __init__(self, folder, arguments, seconds):
        self.folder, self.problem = folder, None
        self._command = [sys.executable, "-m", "bert_tf", *map(str, arguments)]
        self._left, self._began, self._process, self._wish = seconds, None, None, "run"
        self._timer, self._lock = None, threading.Lock()
        self.go_on()
        _ALL.add(self)

    @property
    def status(self):
        """"running", "ending" (it saves), "paused", "stopped", "done" or "failed"."""
        with self._lock:
            code = self._process.poll()
            if code is None:
                return "running" if self._wish == "run" else "ending"
            if self._wish != "run":
                return {"pause": "paused", "stop": "stopped"}[self._wish]
            if code == _STOPPED:
                return "stopped"
            if code:
                self.problem = self._last_line()
                return "failed"
            return "done"

    def go_on(self):
        """Start, or go on after a pause."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            with open(self.folder / "output.log", "a", encoding="utf-8") as log:
                self._process = subprocess.Popen(self._command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=subprocess.STDOUT)
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)
            self._wish, self._began = "run", time.monotonic()
            self._timer = threading.Timer(self._left, self.end, ("stop",))
            self._timer.daemon = True
            self._timer.start()

    def end(self, wish):
        """Have it save and leave. Args: wish: "pause", to go on later, or "stop"."""
        with self._lock:
            if self._process.poll() is None:
                self._timer.cancel()
                self._left = max(1.0, self._left - (time.monotonic() - self._began))
                self._process.terminate()
                self._wish = wish
            elif self._wish == "pause":
                self._wish = wish

    def kill(self):
        """End it at once; for when its files are to go or the server ends."""
        with self._lock:
            self._timer.cancel()
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def _last_line(self):
        lines = (self.folder / "output.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # Where files lie on the server is nothing for a visitor.
        said = lines[-1].rsplit("bert_tf: ", 1)[-1].replace(f"{self.folder}{os.sep}", "") if lines else ""
        return said or "It ended without a word."


@st.cache_resource(show_spinner=False)
def _started():
    return {}


def started(name):
    """The `Training` of a run that this server started, or None."""
    return _started().get(name)


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
    name = f"own-{time.strftime('%m%d-%H%M')}-{secrets.token_hex(2)}"
    folder, shipped = runs.folder() / name, _shipped()
    folder.mkdir(parents=True)
    (folder / "text.txt").write_text(text, encoding="utf-8")
    (folder / METRICS).touch()
    begin = ["--init", shipped.snapshots[-1].folder] if warm else [
        "--size", "2x128x2", "--positions", 128, "--vocab", shipped.snapshots[0].folder]
    every = max(1, steps // 100)
    options = [*begin, "--steps", steps, "--batch-size", _BATCH, "--length", _LENGTH, "--learning-rate", rate,
               "--dropout", 0, "--log-every", every, "--save-every", 20 * every, "--threads", 2, "--snapshots"]
    arguments = ["pretrain", "--text", folder / "text.txt", "--output", folder, *options]
    _started()[name] = Training(folder, arguments, 60 * state.limits().max_minutes)
    return name


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
    """End a training that was started here and delete its files."""
    training = _started().pop(name, None)
    if training is None:
        return  # another visitor was faster
    training.kill()
    shutil.rmtree(training.folder, ignore_errors=True)


def _shipped():
    return read_run(runs.SHIPPED / sorted(path.name for path in runs.SHIPPED.iterdir())[0])
