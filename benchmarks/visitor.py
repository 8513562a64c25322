"""A visitor of the explorer without a browser, by Streamlit's own protocol; and the process of a running explorer."""

import contextlib
import os
import time
import urllib.parse
from pathlib import Path

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from ui.shell.error_messages import FAULTS

PATIENCE = 300  # seconds after which a run of a page counts as lost


class Visitor:
    """One session at an explorer. Each `open` is a run of the page, as after a press that changes the address.

    Args:
        address: "http://127.0.0.1:PORT".
    """

    def __init__(self, address):
        server = address.removeprefix("http://")
        stream = connect(f"ws://{server}/_stcore/stream", subprotocols=["streamlit"], max_size=None)
        self._open = contextlib.ExitStack()
        self._socket = self._open.enter_context(stream)

    def open(self, **parameters):
        """Open a link and wait until its page is drawn.

        Returns: (seconds, whether the page shows an exception, or the sentence of a fault of the program).
        """
        message = BackMsg()
        message.rerun_script.query_string = urllib.parse.urlencode(parameters)
        began, failed = time.perf_counter(), False
        self._socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg.FromString(self._socket.recv(PATIENCE))
            kind = answer.WhichOneof("type")
            if kind == "delta":
                failed |= _is_fault(answer.delta.new_element)
            # After a run that ended early for another one, that one draws the page.
            if kind == "script_finished" and answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return time.perf_counter() - began, failed

    def close(self):
        """Close the tab."""
        self._open.close()


def _is_fault(element):
    if element.WhichOneof("type") == "alert":
        return element.alert.format == Alert.ERROR and element.alert.body.startswith(FAULTS)
    return element.WhichOneof("type") == "exception"


class ServerProcess:
    """The process of an explorer that this process started: its memory and its processor time (Linux).

    Args:
        port: int. The port at which it listens.
    """

    def __init__(self, port):
        self._folder = next(path for path in Path("/proc").glob("[0-9]*") if _is_server(path, port))

    @property
    def megabytes(self):
        """The resident memory, in MB."""
        return self._kilobytes("VmRSS") / 1000

    @property
    def most_megabytes(self):
        """The highest resident memory so far, in MB."""
        return self._kilobytes("VmHWM") / 1000

    @property
    def cpu_seconds(self):
        """The processor time so far, in seconds."""
        user, system = (self._folder / "stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _kilobytes(self, name):
        lines = (line.split(":", 1) for line in (self._folder / "status").read_text().splitlines())
        return int(dict(lines)[name].split()[0]) * 1.024


def _is_server(path, port):
    try:
        words = (path / "cmdline").read_bytes().split(b"\0")
        parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return False
    return parent == os.getpid() and b"streamlit" in words and str(port).encode() in words
