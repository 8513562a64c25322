"""Streamlit's message `clear_cache`, which any visitor's browser may send, takes nothing from the other visitors."""

import threading
import types

import pytest
import streamlit as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.script_data import ScriptData

from tests.conftest import run_in_own_loop
from ui.session import downloads, finetuning_jobs, jobs, model_store, snapshot_store, trace_store, training_jobs
from ui.shell.server_cache import server_cache

PATIENCE = 60


def send_clear_cache():
    """Send the message as a browser does: to the session of a visitor."""

    async def deliver():
        session = AppSession(ScriptData("app.py", False), MemoryUploadedFileManager("/"), None, None, {})
        message = BackMsg()
        message.clear_cache = True
        session.handle_backmsg(message)

    run_in_own_loop(deliver())


def test_the_message_empties_streamlits_own_caches():
    calls = []
    value = st.cache_resource(lambda: calls.append(1), show_spinner=False)
    value()
    value()
    send_clear_cache()
    value()
    assert len(calls) == 2


@pytest.mark.parametrize("module", [training_jobs, finetuning_jobs], ids=["training", "fine-tuning"])
def test_a_running_training_can_still_be_paused_after_the_message(module):
    module._started()["own-one"] = training = types.SimpleNamespace(status="running")
    try:
        send_clear_cache()
        assert module.started("own-one") is training
    finally:
        module._started().clear()


def test_a_download_can_still_be_stopped_after_the_message(monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(downloads, "_fetch", lambda name, progress: gate.wait(PATIENCE))
    downloads.shared_downloads().start("bert-tiny")
    try:
        running = downloads.shared_downloads().get("bert-tiny")
        send_clear_cache()
        assert downloads.shared_downloads().get("bert-tiny") is running and running.running
    finally:
        gate.set()
        downloads.shared_downloads.clear()


@pytest.mark.parametrize(
    "shared",
    [jobs._slots, trace_store._store, snapshot_store._store, model_store.catalogue],
    ids=["slots of jobs", "traces", "snapshots", "catalogue"],
)
def test_what_visitors_share_is_the_same_object_after_the_message(shared):
    before = shared()
    send_clear_cache()
    assert shared() is before


def test_a_model_is_not_loaded_again_after_the_message():
    before = model_store.shared_model("tiny-cased")
    send_clear_cache()
    assert model_store.shared_model("tiny-cased") is before


def test_a_value_is_computed_once_though_many_threads_ask_for_it():
    calls, gate = [], threading.Event()

    @server_cache
    def value(name):
        calls.append(name)
        gate.wait(PATIENCE)
        return object()

    results = []
    threads = [threading.Thread(target=lambda: results.append(value("a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert calls == ["a"] and len(results) == 8 and len(set(map(id, results))) == 1


def test_the_least_recently_used_value_goes_first_and_an_error_is_not_kept():
    calls = []

    @server_cache(max_entries=2)
    def value(name):
        calls.append(name)
        if name == "bad":
            raise ValueError(name)
        return name

    for name in ("a", "b", "a", "c", "a", "b"):
        value(name)
    assert calls == ["a", "b", "c", "b"]
    for _ in range(2):
        with pytest.raises(ValueError):
            value("bad")
    assert calls[-2:] == ["bad", "bad"]


def test_a_value_is_computed_again_after_its_time(monkeypatch):
    now, calls = [0.0], []
    monkeypatch.setattr("ui.shell.server_cache.time.monotonic", lambda: now[0])

    @server_cache(seconds=10)
    def value():
        calls.append(now[0])

    for now[0] in (0.0, 9.0, 10.0, 11.0):
        value()
    assert calls == [0.0, 10.0]


def test_a_value_that_was_being_computed_when_all_were_dropped_is_not_kept():
    calls = []

    @server_cache
    def value():
        calls.append(1)
        if len(calls) == 1:
            value.clear()  # as another thread does when a model has been downloaded
        return len(calls)

    assert [value(), value(), value()] == [1, 2, 2]
