"""The identity of a process, written to a file, so that a restarted server finds the process again."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from bert_tf.errors import CheckpointError
from bert_tf.files import read_json, write_json

_POLL, _PATIENCE = 0.05, 10.0  # seconds between two looks at a process that was killed, and of all looks
_SYNCHRONIZE, _WAIT_TIMEOUT = 0x00100000, 0x102  # of Windows: the right to wait for a process; it has not ended


def write_process(path, pid, **more):
    """Write the identity of a running process to a JSON file.

    Args:
        path: of the file. pid: int. more: further JSON values for the reader.
    """
    write_json(path, {"pid": pid, "started": _start_time(pid), **more})


def read_process(path):
    """The values of a file of ``write_process``, or None if there is no readable one."""
    try:
        return read_json(path)
    except CheckpointError:
        return None


def find_process(path):
    """The ``FoundProcess`` of a file of ``write_process`` if that process still runs, else None."""
    values = read_process(path)
    if not values or type(values.get("pid")) is not int or values.get("started") is None:
        return None
    process = FoundProcess(values["pid"], values["started"])
    return process if process.poll() is None else None


def ask_to_end(process):
    """Send a process the signal at which a training saves its last step and ends."""
    if sys.platform == "win32":
        try:
            process.send_signal(signal.CTRL_BREAK_EVENT)
            return
        except OSError:
            pass  # a server without a console cannot send it
    process.terminate()


def may_run(values):
    """Whether a process has the number in the values of ``read_process``, which have no start time (Windows).

    It may be another process: this is for counting, not for ending it.
    """
    number = values.get("pid")
    return values.get("started", number) is None and type(number) is int and _lives(number)


class FoundProcess:
    """A process that another server has started, with the methods of `subprocess.Popen`.

    Args:
        pid: int. started: its start time, as ``write_process`` wrote it; the system gives a number to another process
            after the first has ended.
    """

    def __init__(self, pid, started):
        self.pid, self._started = pid, started

    def poll(self):
        """None while the process runs; afterwards "unknown", as only its parent learns the exit code."""
        return None if _start_time(self.pid) == self._started else "unknown"

    def terminate(self):
        self._send(signal.SIGTERM)

    def kill(self):
        self._send(getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has no SIGKILL; its SIGTERM cannot be caught

    def wait(self):
        """Wait until the process has ended, for at most ten seconds."""
        end = time.monotonic() + _PATIENCE
        while self.poll() is None and time.monotonic() < end:
            time.sleep(_POLL)

    def _send(self, number):
        if self.poll() is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass  # it has just ended


def _lives(pid):
    """Whether there is a process with a number."""
    if sys.platform == "win32":  # there `os.kill` has no signal that only asks
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(_SYNCHRONIZE, False, pid)
        ended = not handle or kernel.WaitForSingleObject(handle, 0) != _WAIT_TIMEOUT
        kernel.CloseHandle(handle)
        return not ended
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # of another user
    return True


def _start_time(pid):
    """The start time of a process as text; None if there is none, or it has ended and its parent has not noticed."""
    if pathlib.Path("/proc/self/stat").exists():
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        # proc(5): the name in parentheses may hold spaces; after it the state is field 3, the start time field 22.
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    if shutil.which("ps") is None:
        return None  # Windows: a restarted server does not find the processes of the one before
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    # The time in the same words for every server, whatever its language and its time zone.
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    listed = subprocess.run(command, capture_output=True, text=True, env=environment)
    state, _, started = listed.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith("Z") else None
