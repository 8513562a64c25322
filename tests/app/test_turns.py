"""Whoever waits for a model that another visitor's long work uses gets it between two steps of that work."""

import contextlib
import threading
import types

import numpy as np
import pytest

from bert_tf import load, startup
from bert_tf.checkpoints.stored_model import engine_unused, when_engine_unused
from bert_tf.explain import SALIENCY_METHODS, mask_target
from bert_tf.inference import hooked_model
from bert_tf.runtime import Runtime
from tests.app.page_reading import PATIENCE
from tests.conftest import make_bert
from ui.session import model_store
from ui.session.fair_lock import presses
from ui.session.model_store import SharedModel, shared_model

TEXT = "The city has a river and the [MASK] sat on the boat."
#: The methods with gradients; the others read blocks of inputs, of which a short text may need a single one.
METHODS = ["integrated-gradients", "smoothgrad", "deeplift", "lrp"]


def steps_before_a_press_is_answered(work):
    """Does long work on a shared model; a visitor presses at its second step.

    Args:
        work: function (bert, trace, target, progress).

    Returns: (the number of the work's steps until the press is answered, all its steps).
    """
    shared = shared_model("tiny-cased")
    trace = shared.trace(TEXT, "", ())
    target = shared.run(mask_target, trace)
    steps, answered = [], []

    def press():
        shared.trace(" ".join([TEXT] * 6), "", ())  # a text as short as the work's own would not wait at all
        answered.append(len(steps))

    visitor = threading.Thread(target=press, daemon=True)

    def counted(bert, progress):
        def step(done, total):
            steps.append(done)
            if len(steps) == 2:
                visitor.start()
                while not shared.lock._waiting:  # the work holds the model, so the visitor has to wait
                    assert visitor.is_alive()
            return progress(done, total)

        return work(bert, trace, target, step)

    shared.run(counted, progress=lambda done, total: True)
    visitor.join(PATIENCE)
    assert answered
    return answered[0] - 2, len(steps)


@pytest.mark.parametrize("method", METHODS)
def test_a_press_during_gradients_is_answered_before_the_next_layer(method):
    layers = shared_model("tiny-cased").bert.config.num_hidden_layers
    options = {"steps": 1} if method == "integrated-gradients" else {}
    waited, steps = steps_before_a_press_is_answered(
        lambda bert, trace, target, progress: SALIENCY_METHODS[method](
            bert, trace, target, progress=progress, **options
        )
    )
    # Forwards and backwards, a step is one layer and not a whole pass.
    assert waited == 0 and steps >= 2 * layers


def test_nobody_holds_a_model_while_tensorflow_computes_gradients(monkeypatch):
    shared, held = shared_model("tiny-cased"), []
    run_beside_engine = hooked_model._run_beside_engine

    def watched(function, *arguments):
        def seen(*arguments):
            held.append(shared.lock._held)
            return function(*arguments)

        return run_beside_engine(seen, *arguments)

    monkeypatch.setattr(hooked_model, "_run_beside_engine", watched)
    monkeypatch.setattr(shared.bert.hooked(), "_functions", {})
    trace = shared.trace(TEXT, "", ())
    target = shared.run(mask_target, trace)
    shared.run(SALIENCY_METHODS["gradient-x-input"], trace, target)
    assert held == [False] * (3 + 2 * shared.bert.config.num_hidden_layers)  # the sum and the head, and the way back


def test_steps_of_a_model_that_the_store_dropped_and_read_again_take_no_room_from_others():
    first, second = (load("tiny-cased") for _ in range(2))
    berts, sizes = [first], []

    def room(size, patience, waiting):
        sizes.append(size)
        return contextlib.nullcontext()

    shared = SharedModel("again", lambda: berts[-1], room=room)
    trace = shared.trace(TEXT, "", ())
    target = shared.run(mask_target, trace)
    shared.run(SALIENCY_METHODS["gradient-x-input"], trace, target)  # builds the Keras model

    def work(bert):
        berts.append(second)
        return SALIENCY_METHODS["gradient-x-input"](bert, trace, target)

    sizes.clear()
    shared.run(work)
    assert second.weights.bytes_to_build > 0 and set(sizes) == {0}


@pytest.mark.parametrize("imported", [{}, {"tensorflow": "imported"}])
def test_room_is_made_before_tensorflow_is_imported(monkeypatch, imported):
    bert, sizes = make_bert(name="one"), []
    monkeypatch.setattr(model_store, "sys", types.SimpleNamespace(modules=imported))

    def room(size, patience, waiting):
        sizes.append(size)
        return contextlib.nullcontext()

    def work(bert):
        with engine_unused():
            pass

    SharedModel("one", lambda: bert, room=room).run(work)
    to_build = getattr(bert.weights, "bytes_to_build", 0)
    assert sizes == [to_build if imported else to_build + 600_000_000]


@pytest.mark.parametrize("engine", ["openvino", "tensorflow"])
def test_tensorflow_has_a_low_priority_only_beside_another_engine(monkeypatch, engine):
    bert, started = make_bert(name="one"), []
    bert.runtime = Runtime(bert.weights, engine=engine)
    monkeypatch.setattr(startup, "start_tensorflow_threads", lambda: started.append(engine))
    SharedModel("one", lambda: bert).run(lambda bert: bert.hooked())
    assert set(started) == {engine} - {"tensorflow"}


def test_a_short_text_waits_for_no_longer_pass_of_another_visitor(monkeypatch):
    for visitor in ("one", "other"):
        with presses().answered(visitor):
            pass
    shared = SharedModel("two", lambda bert=shared_model("tiny-cased").bert: bert)
    engine, answered = shared.bert.runtime._load_engine(), threading.Event()
    is_running, long_text = threading.Event(), " ".join([TEXT] * 6)
    memory_of_maps = engine._memory_of_maps

    def slow(kind, request, rows, tokens):
        if tokens > 64:
            is_running.set()
            assert answered.wait(PATIENCE)  # this pass goes on when the short text has its answer
        return memory_of_maps(kind, request, rows, tokens)

    monkeypatch.setattr(engine, "_memory_of_maps", slow)
    visitor = threading.Thread(target=shared.trace, args=(long_text, "", (), True), daemon=True)
    visitor.start()
    assert is_running.wait(PATIENCE)
    trace = shared.trace(TEXT, "", (), attentions=True)
    answered.set()
    visitor.join(PATIENCE)
    assert not visitor.is_alive() and trace.length <= 64
    monkeypatch.undo()
    np.testing.assert_array_equal(trace.attentions, shared.trace(TEXT, "", (), attentions=True).attentions)


def test_a_press_during_a_sweep_over_the_heads_is_answered_before_the_next_layer(monkeypatch):
    from bert_tf.explain.interventions import ablation

    monkeypatch.setattr(ablation, "TOKENS_PER_BATCH", 1)
    waited, steps = steps_before_a_press_is_answered(
        lambda bert, trace, target, progress: ablation.sweep(bert, trace, ablation.every_head(bert.config), progress)
    )
    config = shared_model("tiny-cased").bert.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    # One head a block: its end is a step, and so is each layer from that of the head on.
    assert waited == 0 and steps == heads * sum(1 + layers - layer for layer in range(layers))


def results_of_two_visitors(bert, work):
    """What ``work()`` returns to two visitors at once; the second begins while the Keras model is built for the first.

    Meanwhile nobody holds the model. A visitor who does not get a result within half a minute has none.
    """
    shared = SharedModel("two", lambda: bert)
    is_built, asked, results = threading.Event(), threading.Event(), []

    @contextlib.contextmanager
    def released():
        with shared._released():
            is_built.set()
            assert asked.wait(PATIENCE)
            yield

    def visit(around):
        with shared.lock, when_engine_unused(around):
            if around != released:
                asked.set()
            results.append(work())

    visitors = [threading.Thread(target=visit, args=(around,), daemon=True) for around in (released, shared._released)]
    visitors[0].start()
    assert is_built.wait(PATIENCE)
    visitors[1].start()
    for visitor in visitors:
        visitor.join(30)
    return results


def test_two_visitors_who_need_the_hooked_model_first_both_get_it():
    bert = make_bert(layers=1, name="two")
    hooked = results_of_two_visitors(bert, bert.hooked)
    assert len(hooked) == 2 and hooked[0] is hooked[1]


def test_two_visitors_whose_passes_need_the_keras_model_first_both_get_their_answers():
    bert = load("tiny-cased")
    bert.runtime = Runtime(bert.weights, engine="tensorflow")
    traces = results_of_two_visitors(bert, lambda: bert.trace(TEXT))
    assert len(traces) == 2
    np.testing.assert_array_equal(traces[0].logits, traces[1].logits)
