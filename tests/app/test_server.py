"""The server: what the first link to it opens, and that it ends within seconds though a browser does not answer."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.visitor import Visitor
from tests.campaign.soak import logged_faults
from ui.server import restart

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240
#: Seconds that a server may take to end: the two in which it closes its connections, and what a busy machine adds.
MOST = 9
#: Opens an address and a view by Streamlit's protocol, prints the types of the messages until it is drawn, and stays.
BROWSER = """
import sys, time
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

port, name, query = sys.argv[1:]
with connect(f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=["streamlit"], max_size=None) as page:
    message = BackMsg()
    message.rerun_script.query_string, message.rerun_script.page_name = query, name
    page.send(message.SerializeToString())
    types = []
    while "script_finished" not in types:
        types.append(ForwardMsg.FromString(page.recv(240)).WhichOneof("type"))
    print(*types, flush=True)
    time.sleep(600)
"""


#: A server that holds too much for its liking, and to which each visit has ended as soon as its tab is closed.
IMPATIENT = """
import sys
from streamlit.web.cli import main
from ui.server import restart
from ui.session import memory_budget

memory_budget._LOOK, memory_budget._LEFT, restart._LOOK, restart._GROWN = 0.1, 0.1, 0.1, 0.0
Visits = memory_budget.Visits
memory_budget.Visits = lambda seconds, *others: Visits(0.1, *others)
sys.exit(main())
"""

#: A server whose pages have a fault.
FAULTY = """
import sys
from streamlit.web.cli import main
from ui.shell import catalogue

def draw(name):
    raise KeyError("made")

catalogue.draw = draw
sys.exit(main())
"""


@pytest.fixture
def server(explorer_home, tmp_path):
    """A server that has just started, and its port."""
    with started(["-m", "streamlit"], tmp_path / "log") as process_and_port:
        yield process_and_port


@contextlib.contextmanager
def started(program, log, headless="true"):
    """The process of a server, and its port, when it answers; `headless`: "false" opens a browser at its start."""
    with socket.socket() as free_port:
        free_port.bind(("127.0.0.1", 0))
        port = free_port.getsockname()[1]
    command = [sys.executable, *program, "run", "app.py", "--server.port", str(port), "--server.headless", headless]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=output, stderr=output)
    try:
        _wait_for(port, process, log)
        yield process, port
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def visitor(port, name="", query=""):
    """The process of a visitor, and the types of the messages that it got."""
    browser = subprocess.Popen(
        [sys.executable, "-c", BROWSER, str(port), name, query], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        yield browser, browser.stdout.readline().split()
    finally:
        browser.kill()
        browser.wait()


def test_the_first_link_to_a_server_may_name_a_page_by_its_path(server):
    # Streamlit takes the folder `pages` for its own kind of pages until a run has called `st.navigation`.
    with visitor(server[1], name="logit_lens") as (_, types):
        assert "delta" in types and "page_not_found" not in types
    with visitor(server[1], name="no_such_page") as (_, types):
        assert "page_not_found" in types


def test_a_server_with_a_visitor_ends_within_seconds_of_a_signal(server):
    process, port = server
    with visitor(port, query="page=guide") as (browser, types):
        assert "delta" in types
        browser.send_signal(signal.SIGSTOP)  # as a laptop that was closed
        messages = time.monotonic()
        process.terminate()
        process.wait(PATIENCE)
        seconds = time.monotonic() - messages
    assert process.returncode == 0 and seconds < MOST, seconds


@pytest.mark.parametrize("program, shown", [(["-c", FAULTY], True), (["-m", "streamlit"], False)])
def test_a_fault_of_a_page_is_seen_by_a_visitor_and_in_the_log(explorer_home, tmp_path, program, shown):
    """Otherwise no measurement and no campaign would see one."""
    with started(program, tmp_path / "log") as (_, port):
        visitor = Visitor(f"http://127.0.0.1:{port}")
        assert visitor.open(page="predict", a="The [MASK] ate.")[1] is shown
        visitor.close()
    assert logged_faults((tmp_path / "log").read_text()) == shown * [
        "a fault of the program in the log: KeyError: 'made'"
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read as Linux tells it")
def test_a_server_starts_anew_when_its_visitors_have_gone(explorer_home, tmp_path, monkeypatch):
    (tmp_path / "limits.toml").write_text("[cache]\nrestart = true\n")
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "limits.toml"))
    log, opened, browser = tmp_path / "log", tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    with started(["-c", IMPATIENT], log, headless="false") as (process, port):
        for times in (1, 2):
            with visitor(port, query="page=guide") as (_, types):
                assert "delta" in types
                assert log.read_text().count("the server starts anew") == times - 1
            end = time.monotonic() + PATIENCE
            while log.read_text().count("http://localhost") <= times:
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            _wait_for(port, process, log)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert log.read_text().count("the server starts anew") == 2
    assert opened.read_text().splitlines() == [f"http://localhost:{port}/"]  # no second window of the browser


@pytest.mark.parametrize(
    "megabytes, left, connected, downloads, trainings, restarts",
    [
        (151, True, False, [], 0, True),
        (150, True, False, [], 0, False),
        (151, False, False, [], 0, False),
        (151, True, True, [], 0, False),
        (151, True, False, ["bert"], 0, False),
        (151, True, False, [], 1, False),
    ],
)
def test_a_server_that_is_in_use_or_has_not_grown_does_not_start_anew(
    monkeypatch, megabytes, left, connected, downloads, trainings, restarts
):
    state = "ONE_OR_MORE_SESSIONS_CONNECTED" if connected else "NO_SESSIONS_CONNECTED"
    for name, value in {
        "resident_bytes": lambda: megabytes,
        "memory_budget.visitors_have_left": lambda: left,
        "Runtime": SimpleNamespace(instance=lambda: SimpleNamespace(state=restart.RuntimeState[state])),
        "downloads.shared_downloads": lambda: SimpleNamespace(running=lambda: downloads),
        "training_jobs.running": lambda: trainings,
    }.items():
        monkeypatch.setattr(f"ui.server.restart.{name}", value)
    started_anew = []
    monkeypatch.setattr(restart, "_restart", lambda: started_anew.append(1))
    restart._restart_if_grown(100)
    assert bool(started_anew) == restarts


STUCK = """
import atexit, signal, sys, time
from ui.session import training_jobs
from ui.server import shutdown

signal.signal(signal.SIGTERM, lambda number, stack: print("server told", flush=True))
training_jobs.leave_all = lambda: print("trainings told", flush=True)
shutdown.prepare()
print(time.time(), flush=True)
signal.raise_signal(signal.SIGTERM)
if sys.argv[1] == "a computation":
    time.sleep(600)
else:
    atexit.register(time.sleep, 600)
"""


@pytest.mark.parametrize("what", ["a computation", "the interpreter's own end"])
def test_a_server_in_which_something_does_not_end_ends_all_the_same(what):
    server = subprocess.run(
        [sys.executable, "-c", STUCK, what], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    ended = time.time()
    began, *messages = server.stdout.splitlines()
    assert server.returncode == 0 and messages == ["trainings told", "server told"] and ended - float(began) < MOST


TOLD_TO_END = """
import signal, types
from ui.server import restart, shutdown

signal.signal(signal.SIGTERM, lambda number, stack: None)
shutdown.prepare()
restart.resident_bytes, restart._restart = lambda: 2, lambda: print("started anew")
restart.memory_budget.visitors_have_left = lambda: True
state = restart.RuntimeState.NO_SESSIONS_CONNECTED
restart.Runtime = types.SimpleNamespace(instance=lambda: types.SimpleNamespace(state=state))
restart._restart_if_grown(1)
signal.raise_signal(signal.SIGTERM)
restart._restart_if_grown(1)
"""


def test_a_server_that_was_told_to_end_does_not_start_anew(explorer_home):
    server = subprocess.run([sys.executable, "-c", TOLD_TO_END], cwd=ROOT, capture_output=True, text=True)
    assert server.stdout.splitlines() == ["started anew"], server.stderr


def _wait_for(port, server, log):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
