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

import pytest

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


@pytest.fixture
def server(explorer_home, tmp_path):
    """A server that has just started, and its port."""
    with socket.socket() as free_port:
        free_port.bind(("127.0.0.1", 0))
        port = free_port.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--server.headless", "true"], cwd=ROOT, env=dict(os.environ), stdout=log, stderr=log
        )
    try:
        _wait_for(port, process, tmp_path / "log")
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


def _wait_for(port, server, log):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
