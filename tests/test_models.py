"""The functional models: equal to Transformers, counted, saved, padded, viewed, in reduced precision."""

from pathlib import Path

import keras
import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.config import BertConfig
from bert_tf.model_outputs import HEADS
from bert_tf.models import build_encoder, build_pretraining_model, named_variables, view
from bert_tf.parameters import parameter_counts
from tests.conftest import outputs_of

GOLDEN = Path(__file__).parent / "golden"
TINY = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


def batch(rows=2, length=7, vocab=50, positions=((1, 3), (2, 0))):
    rng = np.random.default_rng(0)
    return {
        "token_ids": rng.integers(5, vocab, (rows, length)).astype("int32"),
        "segment_ids": np.zeros((rows, length), "int32"),
        "padding_mask": np.ones((rows, length), "int32"),
        "mask_positions": np.array(positions, "int32")[:rows],
    }


def flat(outputs):
    """Dict of arrays, lists opened as name.index."""
    flattened = {}
    for name, value in outputs.items():
        items = {f"{name}.{i}": v for i, v in enumerate(value)} if isinstance(value, (list, tuple)) else {name: value}
        flattened.update({key: np.asarray(keras.ops.convert_to_numpy(item)) for key, item in items.items()})
    return flattened


@pytest.fixture(scope="module")
def golden():
    stored = dict(np.load(GOLDEN / "bert_tiny_random.npz"))
    _, _, model = checkpoints.read(GOLDEN / "bert_tiny_random")
    return model, stored


@pytest.fixture(scope="module")
def model():
    return build_pretraining_model(TINY, outputs_of(HEADS))


def test_every_output_equals_transformers(golden):
    model, stored = golden
    names = ("embeddings_sum", "hidden_states", "attentions", "pooled_output", "mlm_logits_all", "nsp_logits")
    ours = flat(view(model, names)({name: stored[name] for name in ("token_ids", "segment_ids", "padding_mask")}))
    real = stored["padding_mask"].astype(bool)
    compared = 0
    for name, expected in stored.items():
        if name not in ours:
            continue
        actual = ours[name]
        if name.startswith("attentions"):  # [B, N, T, T]: rows of padded queries mean nothing
            actual, expected = actual.swapaxes(1, 2)[real], expected.swapaxes(1, 2)[real]
        elif actual.shape[:2] == real.shape:
            actual, expected = actual[real], expected[real]
        np.testing.assert_allclose(actual, expected, atol=1e-5, rtol=0, err_msg=name)
        compared += 1
    assert compared == 1 + 4 + 3 + 1 + 1 + 1


def test_logits_at_positions_are_those_of_the_full_sequence(golden):
    model, stored = golden
    inputs = {name: stored[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    positions = np.array([[1, 5, 12], [0, 8, 3]])
    logits = np.asarray(view(model, ("mlm_logits",))({**inputs, "mask_positions": positions})["mlm_logits"])
    expected = np.take_along_axis(stored["mlm_logits_all"], positions[:, :, None], 1)
    np.testing.assert_allclose(logits, expected, atol=1e-5)


@pytest.mark.parametrize("size", ["tiny", "mini"])
def test_built_models_have_the_published_counts(size):
    config = BertConfig.named(size)
    assert build_encoder(config).count_params() == parameter_counts(config)["total"]
    assert build_pretraining_model(config).count_params() == parameter_counts(config, HEADS)["total"]


def test_saved_and_reloaded_bit_for_bit(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.bert_config == TINY and again.bert_heads == model.bert_heads
    before, after = flat(model(batch())), flat(again(batch()))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_padding_changes_nothing_at_the_real_positions(model):
    short = batch()
    padded = {
        name: np.pad(array, ((0, 0), (0, 9))) if name != "mask_positions" else array for name, array in short.items()
    }
    padded["token_ids"][:, 7:] = 33  # whatever stands there
    names = ("sequence_output", "pooled_output", "mlm_logits", "nsp_logits", "attentions")
    a, b = flat(view(model, names)(short)), flat(view(model, names)(padded))
    for name in ("pooled_output", "mlm_logits", "nsp_logits"):
        np.testing.assert_allclose(a[name], b[name], atol=2e-6)
    np.testing.assert_allclose(a["sequence_output"], b["sequence_output"][:, :7], atol=2e-6)
    np.testing.assert_allclose(a["attentions.0"], b["attentions.0"][:, :, :7, :7], atol=2e-6)
    assert not b["attentions.1"][:, :, :7, 7:].any()


@pytest.mark.parametrize("rows, length", [(1, 1), (1, 512), (5, 3)])
def test_any_batch_and_length(model, rows, length):
    inputs = batch(rows, length, positions=((0,),) * rows)
    output = view(model, ("sequence_output", "mlm_logits"))(inputs)
    assert output["sequence_output"].shape == (rows, length, 16) and output["mlm_logits"].shape == (rows, 1, 50)


def test_a_view_shares_the_weights(model):
    other = view(model, ("pooled_output",))
    assert {id(variable) for variable in other.weights} <= {id(variable) for variable in model.weights}
    assert other.count_params() == parameter_counts(TINY)["total"]


def test_what_is_not_asked_for_is_not_in_the_graph():
    encoder = build_encoder(TINY, ("sequence_output",))
    assert set(encoder.output) == {"sequence_output"} and not encoder.bert_heads
    assert "mask_positions" not in encoder.input


@pytest.mark.parametrize("policy, tolerance", [("mixed_bfloat16", 0.06), ("bfloat16", 0.1), ("mixed_float16", 0.01)])
def test_reduced_precision_policies(model, policy, tolerance):
    other = build_pretraining_model(TINY, dtype=policy)
    for ours, theirs in zip(named_variables(model).values(), named_variables(other).values()):
        theirs.assign(ours)
    a, b = flat(view(model, ("mlm_logits", "nsp_logits"))(batch())), flat(other(batch()))
    assert b["mlm_logits"].dtype == np.float32
    for name in b:
        np.testing.assert_allclose(a[name], b[name], atol=tolerance)


def test_dropout_only_in_training(model):
    quiet = [np.asarray(model(batch())["sequence_output"]) for _ in range(2)]
    assert np.array_equal(*quiet)
    noisy = [np.asarray(model(batch(), training=True)["sequence_output"]) for _ in range(2)]
    assert not np.allclose(*noisy)


@pytest.mark.parametrize(
    "outputs, words",
    [(("mlm_logit",), ["mlm_logit", "mlm_logits"]), ((), ["No outputs"]), ("mlm_logits", ["not one alone"])],
)
def test_unknown_outputs_are_refused(outputs, words):
    with pytest.raises(ValueError) as caught:
        build_encoder(TINY, outputs)
    assert all(word in str(caught.value) for word in words)


def test_an_output_without_its_head_is_refused():
    with pytest.raises(ValueError, match="nsp_logits.*nsp head"):
        build_pretraining_model(TINY, ("nsp_logits",), heads=("mlm", "pooler"))


@pytest.mark.slow
def test_pretraining_model_serves_fit_in_keras():
    """A plain functional model: Keras' own training can be used on it."""
    model = build_pretraining_model(TINY, ("nsp_logits",), heads=("pooler", "nsp"))
    model.compile(
        keras.optimizers.Adam(1e-2), loss={"nsp_logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    )
    inputs = {name: array for name, array in batch(4, 6, positions=((0,),) * 4).items() if name != "mask_positions"}
    history = model.fit(inputs, {"nsp_logits": np.array([0, 1, 0, 1])}, epochs=15, verbose=0).history["loss"]
    assert history[-1] < history[0] / 2
