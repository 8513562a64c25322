"""What a visit holds: bounded in bytes, what the page on the screen uses left alone."""

import dataclasses
import threading
import types

import numpy as np
import pytest

from bert_tf.resources.memory_budget import MemoryBudget
from tests.app.page_reading import page_text
from ui.session.session_cache import SessionCache, array_bytes
from ui.shell.view import View


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    text: str
    array: np.ndarray


def array(size):
    return np.zeros(size, np.uint8)


def test_bytes_are_counted_once_and_a_view_keeps_its_whole_array():
    whole = array(5000)
    assert sum(array_bytes((whole[:10], [whole], {"x": Record("abc", whole)})).values()) == 5000 + 4
    store = SessionCache(10**6)
    store.put("one", 1, whole)
    store.put("two", 2, Record("", whole))
    assert store.bytes == 5000


def test_tensors_are_counted():
    import tensorflow as tf

    assert sum(array_bytes([tf.zeros((10, 7))]).values()) == 280


def test_what_other_pages_left_goes_first_and_the_longest_unused_of_it():
    store, on_drop = SessionCache(100), []
    for name in "abc":
        store.put(name, 1, array(30), on_drop=lambda name=name: on_drop.append(name))
    store.begin()
    assert store.get("a", 1) is not None and store.get("b", 2) is None
    store.put("d", 1, array(60))
    # Over the bound by 50: b and c go, a is on the screen.
    assert on_drop == ["b", "c"] and store.bytes == 90


def test_what_is_on_the_screen_stays_even_above_the_bound_until_the_next_page():
    store = SessionCache(100)
    store.put("a", 1, array(80))
    store.put("b", 1, array(80))
    assert store.get("a", 1) and store.get("b", 1)
    store.begin()
    store.put("c", 1, array(1))
    assert store.get("a", 1) is None and store.bytes == 81


def test_what_is_on_the_screen_is_no_room_for_others_before_the_next_run_has_used_it():
    budget = MemoryBudget(100)
    store = SessionCache(1000, budget)
    store.put("shown", 1, array(30))
    store.put("left", 1, array(30))
    store.begin()
    assert store.get("shown", 1)
    store.end()
    store.begin()  # the next run of the page, which needs room before it asks for what is on the screen
    with budget.room(90):
        assert store.get("left", 1) is None and store.get("shown", 1)
    store.end()
    store.begin()  # a run of another page
    store.end()
    budget.make_room()
    with budget.room(90):
        assert store.get("shown", 1) is None


def test_results_of_work_beside_the_page_count_and_are_let_go(monkeypatch):
    import streamlit as st

    from ui.session import jobs, session_cache

    monkeypatch.setattr(st, "session_state", {"_view": View()})
    monkeypatch.setattr(jobs, "get_script_run_ctx", lambda: types.SimpleNamespace(session_id="x"))
    monkeypatch.setattr(
        session_cache, "state", types.SimpleNamespace(limits=lambda: types.SimpleNamespace(max_session_megabytes=1))
    )
    monkeypatch.setattr(jobs, "_slots", lambda: threading.Semaphore(1))
    jobs.begin()

    def work(name):
        return jobs.result(name, "key", name, lambda progress: array(600_000))

    assert work("first").nbytes == 600_000 and session_cache.visitor_cache().bytes == pytest.approx(600_000, abs=50)
    session_cache.visitor_cache().begin()
    assert work("second") is not None
    assert jobs.job("first") is None and jobs.job("second") is not None
    assert session_cache.visitor_cache().bytes == pytest.approx(600_000, abs=50)


def test_the_bounds_are_said_and_hold_from_page_to_page(open_app, explorer_home, monkeypatch):
    limits = explorer_home / "small.toml"
    limits.write_text((explorer_home / "explorer.toml").read_text() + "[cache]\nmax_session_megabytes = 1\n")
    monkeypatch.setenv("BERT_TF_EXPLORER", str(limits))
    app = open_app(page="predict", a="the cat sat on the mat " * 60, mask="a1,a2,a3,a4")
    assert not app.exception and not app.error, page_text(app)
    for page in ("architecture", "input_embeddings", "logit_lens", "nearest_words", "models"):
        app.query_params["page"] = page
        app.run()
        assert not app.exception and not app.error, page_text(app)
    assert "1 MB of results beside those on the screen" in page_text(app)
    assert app.session_state["_kept"].bytes <= 1_000_000
