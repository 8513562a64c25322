"""Uploaded files in memory, with Streamlit's own upload manager."""

import pytest
from starlette.exceptions import HTTPException
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from ui.server import uploads
from ui.server.uploads import BoundedUploads


@pytest.fixture
def manager():
    """A manager whose visits hold at most 100 bytes each, and 250 together."""
    actual = MemoryUploadedFileManager("/")
    actual.bounds = BoundedUploads(actual, 100, 250)
    return actual


@pytest.fixture
def later(monkeypatch):
    """A function that lets a number of seconds pass."""
    now = [1000.0]
    monkeypatch.setattr(uploads.time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def add(manager, session, name, size=40):
    manager.add_file(session, UploadedFileRec(name, name, "text/plain", b"x" * size))


def held(manager):
    return sum(len(file.data) for files in manager.file_storage.values() for file in files.values())


def test_three_hundred_uploads_of_one_visit_stay_within_its_bound(manager):
    refused = 0
    for number in range(300):
        try:
            add(manager, "one", str(number))
        except HTTPException as error:
            assert error.status_code == 413
            refused += 1
    assert held(manager) == 80 and refused == 298


def test_many_visits_stay_within_the_bound_of_all(manager):
    for number in range(6):
        add(manager, str(number), "a")
    with pytest.raises(HTTPException, match="Try again later"):
        add(manager, "last", "a")
    manager.remove_session_files("0")  # a visit ends
    add(manager, "last", "a")
    assert held(manager) == 240


def test_a_file_that_replaces_one_needs_only_the_difference(manager):
    add(manager, "one", "a", 90)
    add(manager, "one", "a", 100)
    assert held(manager) == 100


def test_files_that_the_page_does_not_show_are_freed_at_its_next_run(manager, later):
    for name in "ab":
        add(manager, "one", name)
    add(manager, "two", "c")
    later(90)
    manager.bounds.free("one", {"b"})
    assert list(manager.file_storage["one"]) == ["b"] and list(manager.file_storage["two"]) == ["c"]


def test_a_new_file_is_kept_until_the_run_that_reads_it(manager, later):
    add(manager, "one", "a")
    later(5)
    manager.bounds.free("one", set())
    assert list(manager.file_storage["one"]) == ["a"]


class Ending(dict):
    """The files of a visit; another visit ends while somebody looks at them."""

    def __init__(self, files, end):
        super().__init__(files)
        self._end = end

    def __iter__(self):
        self._end()
        return super().__iter__()


def test_a_visit_may_end_while_the_files_of_another_are_freed(manager):
    for session in ("one", "two", "three"):
        add(manager, session, "a")
    manager.file_storage["two"] = Ending(manager.file_storage["two"], lambda: manager.remove_session_files("three"))
    manager.bounds.free("one", {"a"})
    assert list(manager.file_storage) == ["one", "two"]
