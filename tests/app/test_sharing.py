"""What visitors share: models and the store of traces."""

import threading
import types

import numpy as np
import pytest

from ui.traces import TraceStore, size_of


def trace(size):
    return types.SimpleNamespace(tokens=("x",), attentions=np.zeros(size, np.uint8))


def test_the_store_throws_the_oldest_away_when_it_is_full():
    store = TraceStore(100)
    for key in "abc":
        store.put(key, trace(40))
    assert store.get("a") is None and store.get("b") is not None and store.get("c") is not None


def test_what_was_looked_at_last_is_kept():
    store = TraceStore(100)
    store.put("a", trace(40))
    store.put("b", trace(40))
    store.get("a")
    store.put("c", trace(40))
    assert store.get("b") is None and store.get("a") is not None


def test_a_trace_larger_than_the_store_is_not_kept():
    store = TraceStore(100)
    store.put("a", trace(40))
    store.put("b", trace(101))
    assert store.get("b") is None and store.get("a") is not None
    assert size_of(None) == 0


def test_a_name_that_is_not_in_the_list_is_never_looked_for_on_the_disk(tmp_path, monkeypatch):
    from bert_tf import checkpoints
    from ui.models import shared_model

    looked = []
    monkeypatch.setattr(checkpoints, "find", lambda *args, **kwargs: looked.append(args))
    for name in (str(tmp_path), "../tiny-cased", "tiny-cased/../tiny-cased", ""):
        with pytest.raises(ValueError, match="no model called"):
            shared_model(name)
    assert looked == []


def test_visitors_use_a_model_one_after_the_other():
    from ui.models import SharedModel

    inside, most = [], []

    class Bert:
        max_length = 512

        def trace(self, *_, **__):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.01)
            inside.pop()

    shared = SharedModel("m", Bert(), 0.0)
    threads = [threading.Thread(target=shared.trace, args=("a", "", ())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1 and len(most) == 6


def test_one_model_is_loaded_once_for_all_visitors(open_app):
    from ui.models import shared_model

    open_app()
    assert shared_model("tiny-cased") is shared_model("tiny-cased")


def test_a_deployment_may_read_fewer_tokens_than_the_model(explorer_home, tmp_path, monkeypatch):
    from ui import state
    from ui.models import shared_model

    text = (explorer_home / "explorer.toml").read_text().replace("[text]", "[text]\nmax_tokens = 12")
    (tmp_path / "short.toml").write_text(text)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "short.toml"))
    state.limits.clear()
    found = shared_model("tiny-cased").trace(
        "one two three four five six seven", "eight nine ten eleven", (2,)
    )
    assert found.length == 12 and sum(found.truncated) == 2
    assert found.text_a.endswith("seven")


def test_a_run_leaves_what_another_thread_compiles_alone(open_app):
    """Streamlit resets Keras after every run; a scope that was open in another thread would be gone."""
    import keras

    open_app()
    variable = keras.Variable(np.zeros(2))
    with keras.StatelessScope(state_mapping=[(variable, keras.ops.ones(2))]):
        open_app()
        assert np.array(variable.value).tolist() == [1, 1]
