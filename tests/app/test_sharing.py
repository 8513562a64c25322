"""What visitors share: models and the store of traces."""

import threading
import time
import types

import numpy as np
import pytest

from bert_tf.resources.memory_budget import MemoryBudget
from tests.app.page_reading import PATIENCE
from tests.conftest import make_bert
from ui.session import fair_lock
from ui.session.fair_lock import FairLock, Presses
from ui.session.trace_store import TraceStore, size_of


class Trace(types.SimpleNamespace):
    """Unlike its base class it can be referred to weakly, as a `Trace` of the library can."""


def trace(size):
    return Trace(tokens=("x",), attentions=np.zeros(size, np.uint8))


def test_the_store_throws_the_oldest_away_when_it_is_full():
    store = TraceStore(MemoryBudget(100))
    for key in "abc":
        store.put(key, trace(40))
    assert store.get("a") is None and store.get("b") is not None and store.get("c") is not None


def test_what_was_looked_at_last_is_kept():
    store = TraceStore(MemoryBudget(100))
    store.put("a", trace(40))
    store.put("b", trace(40))
    store.get("a")
    store.put("c", trace(40))
    assert store.get("b") is None and store.get("a") is not None


def test_a_trace_that_a_page_refers_to_is_taken_back_rather_than_computed_again():
    store = TraceStore(MemoryBudget(100))
    on_the_page = trace(60)
    store.put("a", on_the_page)
    store.put("b", trace(60))
    assert store.bytes == 60
    assert store.get("a") is on_the_page and store.bytes == 60 and store.get("b") is None
    store.put("b", trace(60))
    store.put("c", on_the_page)
    store.drop(lambda key: key == "c")  # as those of a session that has ended
    assert store.get("c") is None and store.get("a") is on_the_page
    store.put("b", trace(60))
    del on_the_page
    assert store.get("a") is None


def test_a_trace_larger_than_the_store_is_not_kept():
    store = TraceStore(MemoryBudget(100))
    store.put("a", trace(40))
    store.put("b", trace(101))
    assert store.get("b") is None and store.get("a") is not None
    assert size_of(None) == 0


def test_what_is_held_for_sessions_that_have_ended_is_dropped():
    here = {"one", "two"}
    store = TraceStore(MemoryBudget(100), here.__contains__)
    for key in (("one", "text"), ("two", "text"), ("one", "other")):
        store.put(key, trace(30))
    here.remove("one")
    store.drop_ended()
    assert store.get(("one", "text")) is None and store.get(("one", "other")) is None
    assert store.get(("two", "text")) is not None
    # Its room is free again.
    store.put(("two", "more"), trace(70))
    assert store.get(("two", "text")) is not None and store.get(("two", "more")) is not None


def test_a_visitor_s_traces_go_when_the_visit_ends_though_nobody_else_comes(open_app, monkeypatch):
    from ui.session import state, trace_store

    ended = threading.Event()
    monkeypatch.setattr(state, "is_here", lambda session: not ended.is_set())
    monkeypatch.setattr(trace_store, "_LOOK", 0.02)
    trace_store._store.clear()
    app = open_app(page="all_heads", a="A secret of a visitor.")
    held = trace_store._store()._entries
    assert not app.exception and [entry.value.text_a for entry in held.values()] == ["A secret of a visitor."]
    time.sleep(0.2)
    assert held
    ended.set()
    deadline = time.monotonic() + PATIENCE
    while held and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not held
    trace_store._store.clear()


def test_the_maps_of_a_long_text_are_held_as_numpy_would_round_them(open_app):
    from bert_tf.runtime.half_precision import to_float16
    from ui.session import trace_store

    rng = np.random.default_rng(0)
    maps = rng.exponential(size=(2, 3, 40, 40)).astype(np.float32) ** 6 * 1e-6
    rounded = to_float16(maps)
    assert rounded.dtype == np.float16 and (maps < 6e-5).any() and (maps > 6e-5).any()
    np.testing.assert_array_equal(rounded, maps.astype(np.float16))
    trace_store._store.clear()
    open_app(page="all_heads", a="The bunny ate a carrot today . " * 40)
    assert [entry.value.attentions.dtype for entry in trace_store._store()._entries.values()] == [np.float16]
    trace_store._store.clear()


def test_a_session_is_there_as_long_as_the_server_says_so(monkeypatch):
    from ui.session import state

    assert state.is_here("any")  # without a server
    monkeypatch.setattr(state, "exists", lambda: True)
    monkeypatch.setattr(state, "get_instance", lambda: types.SimpleNamespace(is_active_session={"one"}.__contains__))
    assert state.is_here("one") and not state.is_here("two")


def test_a_name_that_is_not_in_the_list_is_never_looked_for_on_the_disk(tmp_path, monkeypatch):
    from bert_tf import checkpoints
    from ui.session.model_store import shared_model

    looked = []
    monkeypatch.setattr(checkpoints, "find", lambda *args, **kwargs: looked.append(args))
    for name in (str(tmp_path), "../tiny-cased", "tiny-cased/../tiny-cased"):
        with pytest.raises(ValueError, match="no model called"):
            shared_model(name)
    with pytest.raises(ValueError, match="No model is installed. See Models."):
        shared_model("")  # where the limits offer none
    assert looked == []


def test_visitors_use_a_model_one_after_the_other():
    from ui.session.model_store import SharedModel

    inside, most = [], []

    class Bert:
        max_length, runtime = 512, types.SimpleNamespace(runs_aside=lambda tokens: False)
        config = types.SimpleNamespace(num_hidden_layers=1, num_attention_heads=1)

        def trace(self, *_, **__):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.01)
            inside.pop()

    shared = SharedModel("m", lambda bert=Bert(): bert)
    shared.encode = lambda *texts: types.SimpleNamespace(length=100)
    shared.text_b_or_none = lambda text: None
    threads = [threading.Thread(target=shared.trace, args=("a", "", ())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1 and len(most) == 6


def test_who_waits_for_a_lock_gets_it_before_who_had_it():
    lock, order = FairLock(), []

    def other(name):
        with lock:
            order.append(name)

    lock.acquire()
    threads = []
    for name in ("first", "second"):
        threads.append(threading.Thread(target=other, args=(name,)))
        threads[-1].start()
        while len(lock._waiting) < len(threads):
            time.sleep(0.001)
    lock.release()
    lock.acquire()
    order.append("again")
    lock.release()
    for thread in threads:
        thread.join()
    assert order == ["first", "second", "again"]
    with lock:  # and nobody holds it any more
        order.append("free")


def test_long_work_waits_for_the_presses_that_are_being_answered():
    presses, order, ready, answered = Presses(PATIENCE), [], threading.Event(), threading.Event()

    def press():
        with presses.answered("a visitor"):
            ready.set()
            answered.wait(PATIENCE)
            order.append("press")

    visitor = threading.Thread(target=press)
    visitor.start()
    ready.wait(PATIENCE)
    work = threading.Thread(target=lambda: (presses.give_way(), order.append("work")))
    work.start()
    work.join(0.05)
    assert order == []
    answered.set()
    for thread in (visitor, work):
        thread.join()
    assert order == ["press", "work"]


def test_long_work_goes_on_after_a_while_and_for_the_press_that_waits_for_it():
    presses = Presses(0.01)
    with presses.answered("a visitor"):
        presses.give_way()
    presses = Presses(PATIENCE)
    with presses.answered("a visitor"):
        with presses.paused():
            began = time.monotonic()
            presses.give_way()
            assert time.monotonic() - began < PATIENCE / 2
        again = threading.Thread(target=presses.give_way)  # now the press goes first again
        again.start()
        again.join(0.05)
        assert again.is_alive()
    again.join(PATIENCE)


def test_long_work_waits_less_while_somebody_waits_for_its_memory(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(fair_lock.time, "monotonic", lambda: now[0])
    presses, waits = Presses(PATIENCE), []
    monkeypatch.setattr(presses._changed, "wait_for", lambda condition, seconds: waits.append(seconds))
    presses.give_way()
    presses.hurry()
    presses.give_way()
    now[0] += 1
    presses.give_way()
    assert waits == [PATIENCE, fair_lock._SHORT_WAIT, PATIENCE]


def test_visitors_who_pressed_some_time_ago_are_not_here(monkeypatch):
    presses, now = Presses(PATIENCE), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert not presses.are_of_several()
    for visitor, seconds, wanted in (("one", 0, False), ("one", 15, False), ("other", 0, True), ("other", 19, True)):
        now[0] += seconds
        with presses.answered(visitor):
            assert presses.are_of_several() == wanted
    now[0] += 2
    assert not presses.are_of_several()


def test_a_job_gives_way_to_presses_between_its_steps(monkeypatch):
    from ui.session import jobs

    waited, now = [], [0.0]
    monkeypatch.setattr(jobs, "presses", lambda: types.SimpleNamespace(give_way=lambda: waited.append(1)))
    monkeypatch.setattr(jobs, "time", types.SimpleNamespace(monotonic=lambda: now[0]))

    def work(progress):
        progress(1, 3)  # so short a step goes on at once
        now[0] += 1.2 * jobs._STEP
        progress(2, 3)
        progress(3, 3)
        return len(waited)

    job = jobs.Job("key", work, threading.Semaphore(1))
    while job.running:
        time.sleep(0.01)
    assert job.result == 1


def test_a_model_is_given_back_once_while_one_thing_is_built_within_another():
    from bert_tf.checkpoints.stored_model import engine_unused
    from ui.session.model_store import SharedModel

    shared = SharedModel("m", make_bert)

    def held_by_others(_):
        with engine_unused(), engine_unused():
            free = shared.lock._held
        return free, shared.lock._held

    assert shared.run(held_by_others) == (False, True)
    assert not shared.lock._held


def test_others_use_a_model_while_its_keras_model_is_built_for_one(open_app, monkeypatch):
    import bert_tf
    from bert_tf.checkpoints import stored_model
    from ui.session.model_store import SharedModel

    open_app()
    bert, build, seen = bert_tf.load("tiny-cased"), stored_model.build_keras_model, []
    shared = SharedModel("tiny-cased", lambda: bert)

    def slow(*args):
        other = threading.Thread(target=lambda: seen.append(shared.trace("the bunny", "", (1,))))
        other.start()
        other.join(PATIENCE)  # it would never end while this thread holds the model
        seen.append("built")
        return build(*args)

    monkeypatch.setattr(stored_model, "build_keras_model", slow)
    assert shared.run(lambda bert: bert.hooked().config) is bert.config
    assert [type(one).__name__ for one in seen] == ["Trace", "str"]
    with shared.lock:  # and nobody holds it any more
        pass


def test_one_model_is_loaded_once_for_all_visitors(open_app):
    from ui.session.model_store import shared_model

    open_app()
    assert shared_model("tiny-cased") is shared_model("tiny-cased")


def test_a_deployment_may_read_fewer_tokens_than_the_model(explorer_home, tmp_path, monkeypatch):
    from ui.session import state
    from ui.session.model_store import shared_model

    text = (explorer_home / "explorer.toml").read_text().replace("[text]", "[text]\nmax_tokens = 12")
    (tmp_path / "short.toml").write_text(text)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "short.toml"))
    state.limits.clear()
    actual = shared_model("tiny-cased").trace("one two three four five six seven", "eight nine ten eleven", (2,))
    assert actual.length == 12 and sum(actual.truncated) == 2
    assert actual.text_a.endswith("seven")
    # Other words are tried in what was read, though the text goes on.
    from bert_tf.explain import hotflip, mask_target

    shared = shared_model("tiny-cased")
    trace = shared.trace(" ".join(["the bunny ate the carrot"] * 4), "", (3,))
    tried = shared.run(hotflip, trace, mask_target(shared.bert, trace)).tried
    assert trace.length == 12 and tried and all(max(one.word.positions) < 11 for one in tried)


def test_a_run_leaves_what_another_thread_compiles_alone(open_app):
    """Streamlit resets Keras after every run; a scope that was open in another thread would be gone."""
    import keras

    open_app()
    variable = keras.Variable(np.zeros(2))
    with keras.StatelessScope(state_mapping=[(variable, keras.ops.ones(2))]):
        open_app()
        assert np.array(variable.value).tolist() == [1, 1]
