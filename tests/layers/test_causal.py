"""Readers that read one way: what they cannot see changes nothing, and their numbers are those of another library."""

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.checkpoints.tensor_names import tensor_shapes
from bert_tf.config import BertConfig, ConfigError
from bert_tf.inference.bert import Bert
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.parameters import is_transposed, parameter_counts
from bert_tf.runtime import Runtime
from bert_tf.runtime.numpy_ops import read_by_mlm
from bert_tf.runtime.runtime import fast_precision
from bert_tf.tokenizers import Tokenizer
from tests.conftest import outputs_of, randomise, small_vocabulary

LEFT, APART = "left-to-right", "two-one-way"
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}


def make_reader(model_type, seed=0):
    tokenizer = Tokenizer(small_vocabulary())
    config = BertConfig(model_type=model_type, vocab_size=tokenizer.vocab_size, **SIZES)
    model = build_pretraining_model(config)
    randomise(model, seed)
    return Bert(config, tokenizer, model, name=f"tiny-{model_type}")


@pytest.fixture(scope="module", params=[LEFT, APART])
def reader(request):
    return make_reader(request.param)


def batch_of(config, rows=2, tokens=12, seed=0):
    ids = np.random.default_rng(seed).integers(5, config.vocab_size, (rows, tokens)).astype(np.int32)
    return {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}


def logits_of(model, batch):
    return np.asarray(view(model, ("mlm_logits_all",))(batch)["mlm_logits_all"])


@pytest.mark.parametrize("place", [1, 6, 11])
def test_another_token_changes_just_the_predictions_that_may_see_it(reader, place):
    batch = batch_of(reader.config)
    changed = {**batch, "token_ids": batch["token_ids"].copy()}
    changed["token_ids"][:, place] = (batch["token_ids"][:, place] + 1 - 5) % (reader.config.vocab_size - 5) + 5
    moved = np.abs(logits_of(reader.model, batch) - logits_of(reader.model, changed)).max(axis=(0, 2)) > 1e-6
    places = np.arange(12)
    # A place is never predicted from itself; the first has nothing on its left, in neither kind.
    assert (
        moved.tolist()
        == (
            places > place if reader.config.architecture.attention_direction == "left_to_right" else places != place
        ).tolist()
    )


def test_padding_never_gives_away_a_token(reader):
    batch = batch_of(reader.config)
    batch["padding_mask"][:, 8:] = 0
    short = {name: value[:, :8] for name, value in batch.items()}
    padded, alone = logits_of(reader.model, batch), logits_of(reader.model, short)
    # In the padded rows the last real place has padding on its right, and no token but those on its left.
    np.testing.assert_allclose(padded[:, :7], alone[:, :7], atol=1e-5)
    changed = {**batch, "token_ids": batch["token_ids"].copy()}
    changed["token_ids"][:, 7] = 5
    np.testing.assert_allclose(logits_of(reader.model, changed)[:, 7], padded[:, 7], atol=1e-6)


def test_every_state_of_the_left_reader_equals_transformers(tmp_path):
    import torch
    import transformers

    reader = make_reader(LEFT, seed=3)
    checkpoints.save(tmp_path, reader.config, reader.tokenizer, reader.model)
    theirs = transformers.BertLMHeadModel.from_pretrained(tmp_path, is_decoder=True, attn_implementation="eager").eval()
    batch = batch_of(reader.config)
    with torch.no_grad():
        outputs = theirs(
            torch.tensor(batch["token_ids"], dtype=torch.long), output_hidden_states=True, output_attentions=True
        )
    ours = view(reader.model, ("hidden_states", "attentions", "mlm_logits_all"))(batch)
    for mine, other in zip(
        (*ours["hidden_states"], *ours["attentions"]), (*outputs.hidden_states, *outputs.attentions)
    ):
        np.testing.assert_allclose(mine, other.numpy(), atol=1e-5)
    # Theirs tell at each place of the next token, ours of the token at the place.
    np.testing.assert_allclose(ours["mlm_logits_all"][:, 1:], outputs.logits.numpy()[:, :-1], atol=1e-5)


def test_two_one_way_readers_are_two_readers_side_by_side():
    """The left half equals a left-to-right reader of half the width, the right half one that reads backwards."""
    both = make_reader(APART, seed=4)
    config = both.config.replace(model_type=LEFT, hidden_size=16, num_attention_heads=2, intermediate_size=32)
    batch, states = batch_of(both.config), {}
    variables = named_variables(both.model)
    for side in ("left", "right"):
        one = build_pretraining_model(config)
        for name, variable in named_variables(one).items():
            parts = name.split(".")
            if "layer" in parts:
                parts.insert(parts.index("layer") + 2, side)
            if not name.startswith("cls."):
                variable.assign(variables[".".join(parts)])
        table = named_variables(one)["bert.embeddings.position_embeddings.weight"]
        read = batch
        if side == "right":
            read = {**batch, "token_ids": batch["token_ids"][:, ::-1].copy()}
            turned = np.array(table)
            turned[:12] = turned[:12][::-1]
            table.assign(turned)
        states[side] = np.asarray(view(one, ("sequence_output",))(read)["sequence_output"])
    wanted = np.concatenate([states["left"], states["right"][:, ::-1]], axis=-1)
    actual = view(both.model, ("sequence_output",))(batch)["sequence_output"]
    np.testing.assert_allclose(actual, wanted, atol=1e-5)


@pytest.mark.parametrize("engine", ["openvino", "tensorflow"])
@pytest.mark.parametrize("rows, tokens", [(2, 12), (8, 40)], ids=["short", "long"])
def test_each_engine_gives_what_the_model_gives(reader, engine, rows, tokens):
    places = np.random.default_rng(1).permuted(np.tile(np.arange(1, tokens - 1, dtype=np.int32), (rows, 1)), axis=1)
    batch = {**batch_of(reader.config, rows, tokens), "mask_positions": places[:, :3].copy()}
    everything = outputs_of(reader.heads)
    runtime, wanted = Runtime(reader.model, engine=engine), view(reader.model, everything)(batch)
    for outputs in (("sequence_output", "mlm_logits", "mlm_logits_all"), ("attentions", "hidden_states"), everything):
        actual = runtime.run(batch, outputs)
        for name in outputs:
            pairs = (one if isinstance(one, list) else [one] for one in (actual[name], wanted[name]))
            for mine, other in zip(*pairs, strict=True):
                if name == "mlm_logits_all":  # the last token's place has no right neighbour to be told from
                    mine, other = mine[:, :-1], np.asarray(other)[:, :-1]
                np.testing.assert_allclose(mine, other, atol=1e-5, err_msg=name)
    marked = np.take_along_axis(actual["mlm_logits_all"], batch["mask_positions"][..., None], 1)
    np.testing.assert_allclose(actual["mlm_logits"], marked, atol=1e-5)


def test_padding_changes_nothing_on_openvino(reader):
    runtime = Runtime(reader.model)
    assert runtime.engine == "openvino"
    batch = {**batch_of(reader.config, 1), "mask_positions": np.array([[1, 5, 10]], np.int32)}
    padded = {name: np.pad(batch[name], ((0, 0), (0, 4))) for name in ("token_ids", "segment_ids", "padding_mask")}
    actual, wanted = (
        runtime.run({**batch, **more}, ("mlm_logits", "sequence_output", "attentions")) for more in (padded, {})
    )
    np.testing.assert_allclose(actual["mlm_logits"], wanted["mlm_logits"], atol=1e-5)
    np.testing.assert_allclose(actual["sequence_output"][:, :12], wanted["sequence_output"], atol=1e-5)
    np.testing.assert_allclose(actual["attentions"][0][..., :12, :12], wanted["attentions"][0], atol=1e-6)


@pytest.mark.parametrize("precision, tolerance", [("bfloat16", 0.2), ("int8", 0.3)])
def test_reduced_precision_is_near(reader, precision, tolerance):
    batch = {**batch_of(reader.config, 4, 16), "mask_positions": np.array([[1, 5, 10]] * 4, np.int32)}
    exact, reduced = (Runtime(reader.model, one).run(batch, ("mlm_logits",)) for one in ("float32", precision))
    difference = np.abs(reduced["mlm_logits"] - exact["mlm_logits"])
    assert difference.max() < tolerance * np.abs(exact["mlm_logits"]).max()
    # A processor without bfloat16 computes in float32 instead.
    assert (difference.max() > 0) == (precision == "int8" or fast_precision() == "bfloat16")


def test_tensors_and_parameters_are_as_many_as_arithmetic_says(reader):
    variables = named_variables(reader.model)
    shapes = {name: tuple(variable.shape)[:: -1 if is_transposed(name) else 1] for name, variable in variables.items()}
    assert shapes == tensor_shapes(reader.config, reader.heads)
    counted = sum(int(np.prod(shape)) for shape in shapes.values())
    assert counted == reader.model.count_params() == parameter_counts(reader.config, reader.heads)["total"]


@pytest.mark.parametrize("dtype, tolerance", [("float32", 0), ("int8", 0.3)])
def test_saved_and_loaded_it_is_the_same(reader, tmp_path, dtype, tolerance):
    checkpoints.save(tmp_path, reader.config, reader.tokenizer, reader.model, dtype)
    config, _, model = checkpoints.read(tmp_path)
    assert config == reader.config and model.bert_heads == reader.heads
    batch = batch_of(config)
    np.testing.assert_allclose(logits_of(model, batch), logits_of(reader.model, batch), atol=tolerance)


def test_the_open_model_takes_the_same_steps(reader):
    batch = batch_of(reader.config, rows=1)
    states = reader.hooked().states(batch["token_ids"], batch["segment_ids"])
    wanted = view(reader.model, ("hidden_states", "mlm_logits_all"))(batch)
    for mine, other in zip(states, wanted["hidden_states"]):
        np.testing.assert_allclose(mine, other, atol=1e-5)
    read = reader.hooked().read(states[-1])[0]
    np.testing.assert_array_equal(read_by_mlm(reader.weights, np.asarray(states[-1]))[0], read)
    actual = reader.hooked().mlm_log_probabilities(read).numpy()
    logits = np.asarray(wanted["mlm_logits_all"])[0]
    np.testing.assert_allclose(actual, logits - np.log(np.exp(logits).sum(-1, keepdims=True)), atol=1e-4)


def test_what_a_block_adds_is_replaced_in_every_stack(reader):
    from bert_tf.explain.models.architecture import layer_activations_from_state

    one, other = (reader.trace(text).hidden_states[0] for text in ("the cat sat", "the dog ran"))
    stacks = reader.model.bert_layers["layer_0"].stacks()
    own, added = (
        layer_activations_from_state(reader, one, 0),
        layer_activations_from_state(reader, other, 0)["feed_forward"],
    )
    parts = (np.split(values, len(stacks), axis=-1) for values in (own["attention_norm"], added))
    wanted = [np.asarray(stack.feed_forward_norm(middle + half)) for stack, middle, half in zip(stacks, *parts)]
    replace = {"mlp_out": (np.ones((1, len(one), 1), bool), added[None])}
    actual = np.asarray(reader.hooked().layer(0, one[None], replace=replace))
    np.testing.assert_allclose(actual[0], np.concatenate(wanted, axis=-1), atol=2e-5)
    assert np.abs(actual[0] - own["feed_forward_norm"]).max() > 1e-3


def test_the_lens_ends_with_the_model_s_own_answer(reader):
    from bert_tf.explain import logit_lens

    trace = reader.trace("The cat sat on the [MASK].")
    lens, (answer,) = logit_lens(reader, trace), reader.fill_mask(trace)
    assert lens.answers[0].id == answer.predictions[0].id
    assert lens.answer_probabilities[0, -1] == pytest.approx(answer.predictions[0].probability, rel=1e-4)


def test_words_that_a_left_reader_cannot_see_have_no_weight(reader):
    from bert_tf.explain import gradient_x_input, mask_target

    trace = reader.trace("The cat sat on [MASK] mat in Paris.")
    (place,) = trace.masks
    norms = gradient_x_input(reader, trace, mask_target(reader, trace, place)).gradient_norms
    assert norms[place] == 0 and norms[:place].min() > 0
    assert (norms[place + 1 :].max() == 0) == (reader.config.architecture.attention_direction == "left_to_right")


@pytest.mark.parametrize(
    "changes, message",
    [({"num_attention_heads": 1}, "num_attention_heads is 1"), ({"embedding_size": 8}, "embedding_size is 8")],
)
def test_settings_that_cannot_be_halved_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        BertConfig(model_type=APART, vocab_size=60, **{**SIZES, **changes})


def test_the_model_is_saved_by_keras_bit_for_bit(reader, tmp_path):
    import keras

    reader.model.save(tmp_path / "reader.keras")
    again = keras.models.load_model(tmp_path / "reader.keras")
    batch = batch_of(reader.config)
    np.testing.assert_array_equal(logits_of(again, batch), logits_of(reader.model, batch))
