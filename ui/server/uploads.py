"""Uploaded files in memory: bounded for each visit and for all visits, and freed when the page does not show them.

Streamlit bounds one file (`server.maxUploadSize`) and keeps every file until the visit ends, also one that no page has
read.
"""

import threading
import time

import streamlit as st
from starlette.exceptions import HTTPException
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from ui.session import state

_FRESH = 60.0  # seconds in which the run that reads a new file may still be to come


class BoundedUploads:
    """The bounds of an upload manager of Streamlit; several threads may use it.

    Args:
        manager: `MemoryUploadedFileManager`. Its `add_file` refuses a file from now on that exceeds a bound.
        visit_bytes, all_bytes: the bounds of one visit and of all visits.
    """

    def __init__(self, manager, visit_bytes, all_bytes):
        self._manager, self._visit, self._all = manager, visit_bytes, all_bytes
        self._add, self._times, self._lock = manager.add_file, {}, threading.Lock()
        manager.add_file = self.add_file

    def add_file(self, session_id, file):
        """Add a file to a visit.

        Raises:
            HTTPException: status 413, the visit or all visits hold too much; the browser shows that the upload failed.
        """
        with self._lock:
            storage = self._manager.file_storage
            used_bytes = {session: _bytes(files) for session, files in list(storage.items())}
            size = len(file.data) - len(getattr(storage.get(session_id, {}).get(file.file_id), "data", b""))
            if used_bytes.get(session_id, 0) + size > self._visit:
                raise HTTPException(413, "The files of this visit are too large together. Reload the page.")
            if sum(used_bytes.values()) + size > self._all:
                raise HTTPException(413, "The server holds too many files of visitors now. Try again later.")
            self._add(session_id, file)
            self._times[session_id, file.file_id] = time.monotonic()

    def holds(self, session_id):
        """Whether there is a file of a visit."""
        return bool(self._manager.file_storage.get(session_id))

    def free(self, session_id, in_use):
        """Remove the files of a visit that are not ``in_use``, a set of file ids, and not new."""
        with self._lock:
            for file_id in list(self._manager.file_storage.get(session_id, {})):
                added = self._times.get((session_id, file_id), 0.0)
                if file_id not in in_use and time.monotonic() - added > _FRESH:
                    self._manager.remove_file(session_id, file_id)
            # Also those of visits that have ended. Streamlit removes the files of one without this lock.
            storage = list(self._manager.file_storage.items())
            known = {(session, file_id) for session, files in storage for file_id in list(files)}
            self._times = {key: added for key, added in self._times.items() if key in known}


def _bytes(files):
    return sum(len(file.data) for file in list(files.values()))


_BOUNDED = []  # the one `BoundedUploads` of this server
_MAKING = threading.Lock()


def _bounded():
    with _MAKING:
        if not _BOUNDED:
            limits = state.limits()
            _BOUNDED.append(
                BoundedUploads(
                    get_instance().uploaded_file_mgr,
                    1_000_000 * limits.max_visit_upload_megabytes,
                    1_000_000 * limits.max_all_upload_megabytes,
                )
            )
        return _BOUNDED[0]


def bound():
    """Bound the uploads of this server. Call it at the start of a run."""
    if exists():
        _bounded()


def free():
    """Free the uploads of this visit that the page does not show. Call it at the end of a run."""
    if exists() and _bounded().holds(session := get_script_run_ctx().session_id):
        # To look at all values of a session takes milliseconds, and most visits hold no file.
        in_use = {value.file_id for value in st.session_state.values() if isinstance(value, UploadedFile)}
        _bounded().free(session, in_use)
