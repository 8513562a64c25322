"""The runtime gives what the Keras model gives, at the shapes that were asked for, from any thread."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.config import BertConfig
from bert_tf.model_outputs import HEADS
from bert_tf.models import build_pretraining_model, view
from bert_tf.runtime import Runtime, RuntimeInputError, openvino_engine
from bert_tf.runtime import runtime as runtime_module
from bert_tf.runtime.graphs import bert as bert_graph
from bert_tf.runtime.runtime import actual_precision, fast_precision
from tests.conftest import outputs_of

ENGINES = ("openvino", "tensorflow")
OUTPUTS = outputs_of(HEADS)
CONFIG = BertConfig.tiny(vocab_size=120, max_position_embeddings=64)


@pytest.fixture(scope="module")
def model():
    built = build_pretraining_model(CONFIG, ("mlm_logits",))
    random = np.random.default_rng(3)
    for variable in built.bert_layers["embeddings"].weights + built.weights:
        variable.assign(np.asarray(variable) + random.normal(0, 0.1, variable.shape))
    return built


@pytest.fixture(scope="module", params=ENGINES)
def runtime(request, model):
    return Runtime(model, engine=request.param)


def batch(rows=2, tokens=11, places=3, padding=0, seed=0):
    random = np.random.default_rng(seed)
    mask = np.ones((rows, tokens), np.int32)
    if padding:
        mask[-1, -padding:] = 0
    return {
        "token_ids": random.integers(0, 120, (rows, tokens), np.int32),
        "segment_ids": random.integers(0, 2, (rows, tokens), np.int32),
        "padding_mask": mask,
        "mask_positions": random.integers(0, tokens, (rows, places), np.int32),
    }


def assert_same(ours, theirs, tolerance=1e-5):
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            assert_same(one, other, tolerance)
        return
    assert ours.dtype == np.float32
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_allclose(ours, np.asarray(theirs), atol=tolerance)


def test_short_inputs_run_on_one_thread_where_other_work_waits_for_the_cores(model):
    shared, alone = (Runtime(model, engine="openvino", shares_cores=shares) for shares in (True, False))
    for rows, graph in ((1, "one thread"), (2, "maps")):
        inputs, outputs = batch(rows, tokens=40), ("mlm_logits", "attentions", "hidden_states")
        for name, ours in shared.run(inputs, outputs).items():
            assert_same(ours, alone.run(inputs, outputs)[name])
        requests = shared.graphs
        threads = requests[graph].request.get_compiled_model().get_property("INFERENCE_NUM_THREADS")
        assert (threads == 1) == (graph == "one thread") or os.cpu_count() == 1
    assert set(alone.graphs) == {"maps"} and set(requests) == {"one thread", "maps"}


def test_the_workspaces_of_graphs_can_be_freed_and_results_stay_the_same(model):
    runtime, inputs, outputs = Runtime(model, engine="openvino"), batch(2, tokens=60), ("mlm_logits", "attentions")
    before, graphs = runtime.run(inputs, outputs), runtime.graphs
    maps = sum(layer.nbytes for layer in before["attentions"])
    assert runtime.nbytes >= graphs.nbytes + maps
    with graphs.using("maps", None):
        assert graphs.oldest_workspace() is None  # it runs
    graphs.free_oldest()
    assert runtime.nbytes == graphs.nbytes and graphs.oldest_workspace() is None
    after = runtime.run(inputs, outputs)
    for name in outputs:
        assert_same(after[name], before[name], 0)
    assert runtime.nbytes >= graphs.nbytes + maps and graphs.oldest_workspace() is not None


@pytest.mark.parametrize(
    "can, gpu, expected",
    [(["BF16", "FP32"], False, "bfloat16"), (["BF16"], True, "float32"), (["FP32"], False, "float32")],
)
def test_the_fast_precision_is_one_that_the_machine_computes_in(monkeypatch, can, gpu, expected):
    openvino_engine.computed_in.cache_clear()
    monkeypatch.setattr(openvino_engine, "core", lambda: SimpleNamespace(get_property=lambda device, name: can))
    monkeypatch.setattr(runtime_module, "_has_gpu", lambda: gpu)
    assert fast_precision() == expected
    assert actual_precision("bfloat16") == ("bfloat16" if gpu else expected)
    openvino_engine.computed_in.cache_clear()


@pytest.mark.parametrize("actual, says", [("float32", True), ("bfloat16", False)])
def test_a_precision_that_the_processor_lacks_is_noted_once(model, monkeypatch, caplog, actual, says):
    monkeypatch.setattr(openvino_engine, "computed_in", lambda precision: actual)
    openvino_engine._note_float32.cache_clear()
    for _ in range(2):
        openvino_engine.OpenVINOEngine(model, "bfloat16")
    openvino_engine._note_float32.cache_clear()
    expected = ["The processor here cannot compute in bfloat16; it computes in float32."] if says else []
    assert caplog.messages == expected


def test_whether_other_work_waits_is_asked_at_every_pass(model):
    waits = []
    runtime = Runtime(model, engine="openvino", shares_cores=lambda: bool(waits))
    inputs = batch(rows=1, tokens=40)
    assert not runtime.runs_aside(40)
    alone = runtime.run(inputs, ("mlm_logits",))["mlm_logits"]
    assert set(runtime.graphs) == {"maps"}
    waits.append("another visitor")
    assert runtime.runs_aside(40) and not runtime.runs_aside(65)
    assert_same(runtime.run(inputs, ("mlm_logits",))["mlm_logits"], alone)
    assert set(runtime.graphs) == {"maps", "one thread"}


def test_the_graph_that_was_used_longest_ago_is_dropped_and_compiled_again(model):
    runtime = Runtime(model, engine="openvino", shares_cores=True)
    assert runtime.graphs is None
    inputs, outputs = batch(rows=1, tokens=40), ("mlm_logits", "attentions")
    first, graphs = runtime.run(inputs, outputs), runtime.graphs
    runtime.run(batch(rows=2, tokens=40), outputs)
    size = runtime.nbytes
    assert graphs.oldest() < graphs.latest() <= time.monotonic()
    graphs.drop_oldest()
    assert list(graphs) == ["maps"] and runtime.nbytes < size
    for name, value in runtime.run(inputs, outputs).items():
        assert_same(value, first[name], 0)


def test_every_output_equals_the_keras_model(model, runtime):
    inputs = batch(padding=4)
    results, wanted = runtime.run(inputs, OUTPUTS), view(model, OUTPUTS)(inputs, training=False)
    assert list(results) == list(OUTPUTS)
    for name in OUTPUTS:
        assert_same(results[name], wanted[name])


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_asked_for_alone_is_the_same(runtime, output):
    inputs = batch(rows=3, tokens=17, padding=5, seed=1)
    assert_same(runtime.run(inputs, (output,))[output], runtime.run(inputs, OUTPUTS)[output])


def test_an_output_not_asked_for_is_not_there(runtime):
    assert list(runtime.run(batch(), ("nsp_logits",))) == ["nsp_logits"]


@pytest.mark.parametrize("rows, tokens, places", [(1, 1, 1), (1, 64, 1), (5, 33, 9), (33, 20, 2)])
def test_any_shape_goes_in_and_comes_out(model, runtime, rows, tokens, places):
    outputs = ("sequence_output", "mlm_logits", "nsp_logits", "attentions", "queries")
    inputs = batch(rows, tokens, places)
    results, wanted = runtime.run(inputs, outputs), view(model, outputs)(inputs, training=False)
    for name in outputs:
        assert_same(results[name], wanted[name])


def test_padding_changes_nothing_at_the_real_tokens(runtime):
    short = batch(rows=1, tokens=9, places=2)
    long = {name: np.pad(array, ((0, 0), (0, 21))) if array.shape[1] == 9 else array for name, array in short.items()}
    outputs = ("sequence_output", "mlm_logits", "nsp_logits", "attentions")
    alone, padded = runtime.run(short, outputs), runtime.run(long, outputs)
    assert_same(padded["sequence_output"][:, :9], alone["sequence_output"])
    assert_same([maps[:, :, :9, :9] for maps in padded["attentions"]], alone["attentions"])
    assert_same(padded["mlm_logits"], alone["mlm_logits"])
    assert_same(padded["nsp_logits"], alone["nsp_logits"])
    assert max(maps[:, :, :, 9:].max() for maps in padded["attentions"]) == 0


def test_results_stay_as_they_were_after_the_next_run(runtime):
    outputs = ("sequence_output", "attentions", "mlm_logits")
    first = runtime.run(batch(seed=1), outputs)
    copies = {name: np.copy(value) for name, value in first.items()}
    runtime.run(batch(seed=2), outputs)
    for name in outputs:
        assert np.array_equal(first[name], copies[name])


def test_a_single_map_kept_from_a_result_stays_as_it_was(runtime):
    corner = runtime.run(batch(seed=1), ("attentions",))["attentions"][1][0, 1, :3, :3]
    original = corner.copy()
    for seed in range(2, 5):
        runtime.run(batch(seed=seed), ("attentions",))
        runtime.run(batch(seed=seed), ("mlm_logits",))
    assert np.array_equal(corner, original)


def test_maps_are_right_whatever_ran_before(model, runtime):
    held = []
    for seed, (rows, tokens, outputs, hold) in enumerate(
        [
            (2, 16, ("attentions",), False),
            (8, 8, ("attentions",), False),  # as many numbers in another shape
            (8, 8, ("attentions",), False),
            (8, 8, ("attentions", "keys"), True),  # another graph, its memory not given back
            (8, 8, ("attentions",), False),
            (8, 8, ("attentions", "keys"), False),
            (2, 16, ("attentions",), False),
        ]
    ):
        inputs, outputs = batch(rows, tokens, seed=seed), (*outputs, "mlm_logits")
        results = runtime.run(inputs, outputs)
        assert_same(results["attentions"], view(model, outputs)(inputs, training=False)["attentions"])
        held += [results] if hold else []
        del results


def test_many_lengths_compile_few_functions(model):
    engine = Runtime(model, engine="tensorflow")
    for tokens in range(1, 65):
        engine.run(batch(rows=1, tokens=tokens, places=1), ("mlm_logits",))
    assert engine._load_engine().compiled <= 5


def test_threads_get_their_own_answers(runtime):
    inputs = [batch(rows=1 + seed % 2, tokens=8 + seed, seed=seed) for seed in range(6)]
    wanted = [runtime.run(one, ("mlm_logits", "attentions")) for one in inputs]
    failures = []

    def work(place):
        try:
            for _ in range(5):
                results = runtime.run(inputs[place], ("mlm_logits", "attentions"))
                assert_same(results["mlm_logits"], wanted[place]["mlm_logits"])
                assert_same(results["attentions"], wanted[place]["attentions"])
        except Exception as error:  # an assertion in a thread would be lost
            failures.append(error)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("engine", ENGINES)
def test_bfloat16_is_near_float32(model, engine):
    inputs = batch(rows=4, tokens=24, padding=6)
    exact = Runtime(model, engine=engine).run(inputs, ("sequence_output", "mlm_logits_all", "attentions"))
    rough = Runtime(model, "bfloat16", engine).run(inputs, ("sequence_output", "mlm_logits_all", "attentions"))
    assert rough["sequence_output"].dtype == np.float32
    assert np.abs(rough["sequence_output"] - exact["sequence_output"]).mean() < 0.02
    agree = rough["mlm_logits_all"].argmax(-1) == exact["mlm_logits_all"].argmax(-1)
    assert agree[inputs["padding_mask"] == 1].mean() > 0.9


def test_in_bfloat16_the_mlm_head_is_computed_in_float32(model):
    inputs = batch(rows=4, tokens=24, padding=6)
    exact, rough = Runtime(model, engine="openvino"), Runtime(model, "bfloat16", "openvino")
    results = rough.run(inputs, ("sequence_output", "mlm_logits", "mlm_logits_all"))
    logits, states = results["mlm_logits_all"], results["sequence_output"]
    at_places = np.take_along_axis(logits, inputs["mask_positions"][..., None], axis=1)
    assert_same([results["mlm_logits"]], [at_places])
    vocabulary = logits.shape[-1]
    answers = np.full(len(states), -1)
    expected, read = (runtime.read_mlm(states, answers, vocabulary) for runtime in (exact, rough))
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities = np.take_along_axis(powers / powers.sum(-1, keepdims=True), expected[0], axis=-1)
    assert_same([probabilities, read[1]], [expected[1], expected[1]], 1e-6)
    assert (read[0] == expected[0]).all()
    kept = [part.copy() for part in (logits, *read)]
    rough.run(batch(seed=3, rows=4, tokens=24, padding=6), ("mlm_logits_all",))
    rough.read_mlm(-states, answers, vocabulary)
    for part, before in zip((logits, *read), kept, strict=True):
        assert np.array_equal(part, before), "the next call changes no earlier result"


@pytest.mark.parametrize("vocabulary", [60, 128, 1000, 1500])
def test_the_highest_logits_are_those_of_a_sort(vocabulary):
    import openvino as ov
    import openvino.opset13 as op

    from bert_tf.runtime.graphs.bert import _top

    logits, top_k = op.parameter([-1, vocabulary], np.float32), op.parameter([], np.int32)
    results = [op.result(value) for value in _top(logits, top_k, vocabulary)]
    run = ov.compile_model(ov.Model(results, [logits, top_k]), "CPU")
    # Rounded, so that many are equal: those keep the order of their ids.
    values = np.round(np.random.default_rng(0).normal(size=(40, vocabulary)).astype(np.float32), 1)
    values[0], values[1, 30:50] = 0, 9
    for count in (1, 5, 20, vocabulary):
        best, ids = run([values, np.array(count, np.int32)]).values()
        expected = np.argsort(-values, axis=1, kind="stable")[:, :count]
        assert (ids == expected).all()
        assert (best == np.take_along_axis(values, expected, axis=1)).all()


def test_models_without_heads_run(model):
    from bert_tf.models import build_encoder

    encoder = build_encoder(CONFIG, ("sequence_output",))
    inputs = batch()
    tokens_only = {name: array for name, array in inputs.items() if name != "mask_positions"}
    for engine in ENGINES:
        runtime = Runtime(encoder, engine=engine)
        assert_same(
            runtime.run(inputs, ("sequence_output",))["sequence_output"],
            view(encoder, ("sequence_output",))(tokens_only)["sequence_output"],
        )
        with pytest.raises(RuntimeInputError, match="mlm head"):
            runtime.run(inputs, ("mlm_logits",))


def test_warm_makes_the_engine_ready(model):
    runtime = Runtime(model, engine="tensorflow")
    runtime.warm(("mlm_logits", "nsp_logits"), length=12)
    runtime.run(batch(rows=1, tokens=9, places=1), ("mlm_logits", "nsp_logits"))
    assert runtime._load_engine().compiled == 1


def test_auto_falls_back_to_tensorflow_for_an_activation_openvino_lacks(model, monkeypatch):
    monkeypatch.delitem(bert_graph.ACTIVATIONS, "gelu")
    assert Runtime(model).engine == "tensorflow"
    with pytest.raises(RuntimeInputError, match="activation 'gelu'"):
        Runtime(model, engine="openvino")


def test_auto_is_openvino_on_a_processor(model):
    assert Runtime(model).engine == "openvino"


def test_auto_falls_back_to_tensorflow_where_openvino_is_not_installed(model, monkeypatch):
    monkeypatch.setattr(runtime_module, "_obstacle", lambda *_: "it is not installed")
    assert Runtime(model).engine == "tensorflow"
    with pytest.raises(RuntimeInputError, match="not installed"):
        Runtime(model, engine="openvino")


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"precision": "float8"}, "float32, bfloat16, int8, not 'float8'"),
        ({"engine": "fast"}, "auto, openvino, tensorflow, not 'fast'"),
    ],
)
def test_unknown_settings_are_refused(model, wrong, message):
    with pytest.raises(RuntimeInputError, match=message):
        Runtime(model, **wrong)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"token_ids": np.zeros((2, 65), np.int32)}, "token_ids"),
        ({"token_ids": np.full((2, 11), 120, np.int32)}, "token_ids must be 0 to 119"),
        ({"segment_ids": np.full((2, 11), -1, np.int32)}, "segment_ids must be 0 to 1"),
        ({"padding_mask": np.ones((2, 10), np.int32)}, r"padding_mask has shape \[2, 10\]"),
        ({"mask_positions": np.full((2, 3), 11, np.int32)}, "mask_positions must be 0 to 10"),
        ({"mask_positions": np.zeros((3, 1), np.int32)}, r"mask_positions has shape \[3, 1\]"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(runtime, change, message):
    with pytest.raises(RuntimeInputError, match=message):
        runtime.run({**batch(), **change}, ("mlm_logits",))


def test_what_is_missing_or_too_long_is_named(runtime):
    lacking = batch()
    del lacking["mask_positions"]
    with pytest.raises(RuntimeInputError, match="lacks mask_positions"):
        runtime.run(lacking, ("mlm_logits",))
    with pytest.raises(RuntimeInputError, match="65 tokens long; this model reads at most 64"):
        runtime.run(batch(tokens=65), ("mlm_logits",))
    with pytest.raises(RuntimeInputError, match="no output 'logits'"):
        runtime.run(batch(), ("logits",))
    with pytest.raises(RuntimeInputError, match="No outputs"):
        runtime.run(batch(), ())


@pytest.mark.slow
def test_the_script_of_parity_compares_every_engine_with_transformers(monkeypatch):
    from benchmarks.parity import ENGINES, TOLERANCE, compare

    used, run = [], Runtime.run
    monkeypatch.setattr(Runtime, "run", lambda self, *arguments: used.append(self.engine) or run(self, *arguments))
    rows = list(compare("bert-tiny", 16, ENGINES))
    assert [row["engine"] for row in rows] == list(ENGINES)
    for row in rows:
        assert row["decisions_equal"]
        for name in ("hidden_states", "attentions", "pooled_output", "mlm_logits_all", "nsp_logits"):
            assert 0 < row[name] < TOLERANCE / 10
    assert used == ["openvino", "tensorflow"]


@pytest.mark.slow
def test_a_signal_is_survived_after_a_model_was_let_go():
    """On processors with AMX OpenVINO gives a thread another stack for signals, which must not go with one model."""
    code = """
import gc, os, signal
import numpy as np
from bert_tf.config import BertConfig
from bert_tf.models import build_pretraining_model
from bert_tf.runtime import Runtime

def used():
    runtime = Runtime(build_pretraining_model(BertConfig.tiny(vocab_size=120)), engine="openvino")
    ids = np.ones((1, 5), np.int32)
    runtime.run({"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids}, ("sequence_output",))
    return runtime

came = []
signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
first, second = used(), used()
del first
gc.collect()
del second
gc.collect()
os.kill(os.getpid(), signal.SIGUSR1)
assert came
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_texts_of_a_hundred_lengths_leave_no_memory_behind():
    command = """
import bert_tf
from bert_tf.resources.memory_budget import resident_bytes
from ui.server.allocator import give_back

def read(lengths):
    bert = bert_tf.load("bert-small-uncased-embedded")
    for length in lengths:
        bert.trace(" ".join(["city"] * length), attentions=True)

read([5])
give_back()
before = resident_bytes()
read(range(6, 106))
give_back()
print(resident_bytes() - before)
"""
    environment = {name: value for name, value in os.environ.items() if name != "ONEDNN_PRIMITIVE_CACHE_CAPACITY"}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout.split()[-1]) < 40e6
