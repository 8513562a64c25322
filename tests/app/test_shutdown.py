"""A server that is told to end does so within seconds, though a browser is connected that does not answer."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240
#: Seconds that a server may take to end: the two in which it closes its connections, and what a busy machine adds.
MOST = 9
#: Opens a page by Streamlit's protocol, reads until it is drawn, and stays.
BROWSER = """
import sys, time
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

with connect(f"ws://127.0.0.1:{sys.argv[1]}/_stcore/stream", subprotocols=["streamlit"], max_size=None) as page:
    message = BackMsg()
    message.rerun_script.query_string = "page=guide"
    page.send(message.SerializeToString())
    while ForwardMsg.FromString(page.recv(240)).WhichOneof("type") != "script_finished":
        pass
    print("drawn", flush=True)
    time.sleep(600)
"""


def test_a_server_with_a_visitor_ends_within_seconds_of_a_signal(explorer_home, tmp_path):
    with socket.socket() as free_port:
        free_port.bind(("127.0.0.1", 0))
        port = free_port.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--server.headless", "true"], cwd=ROOT, env=dict(os.environ), stdout=log, stderr=log
        )
    try:
        _wait_for(port, server, tmp_path / "log")
        browser = subprocess.Popen([sys.executable, "-c", BROWSER, str(port)], cwd=ROOT, stdout=subprocess.PIPE)
        try:
            assert browser.stdout.readline() == b"drawn\n"
            browser.send_signal(signal.SIGSTOP)  # as a laptop that was closed
            told = time.monotonic()
            server.terminate()
            server.wait(PATIENCE)
            seconds = time.monotonic() - told
        finally:
            browser.kill()
            browser.wait()
        assert server.returncode == 0 and seconds < MOST, seconds
    finally:
        server.kill()
        server.wait()


STUCK = """
import signal, sys, time
from ui.session import training_jobs
from ui.server import shutdown

signal.signal(signal.SIGTERM, lambda number, stack: print("server told", flush=True))
training_jobs.leave_all = lambda: print("trainings told", flush=True)
shutdown.prepare()
print(time.time(), flush=True)
signal.raise_signal(signal.SIGTERM)
time.sleep(600)
"""


def test_a_server_in_which_something_does_not_end_ends_all_the_same():
    server = subprocess.run([sys.executable, "-c", STUCK], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    ended = time.time()
    began, *told = server.stdout.splitlines()
    assert server.returncode == 0 and told == ["trainings told", "server told"] and ended - float(began) < MOST


def _wait_for(port, server, log):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
