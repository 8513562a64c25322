"""A model in steps on OpenVINO gives what its Keras model gives, with values read, replaced and blocked."""

import shutil
import types

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.checkpoints.reading import read_stored
from bert_tf.errors import InputError
from bert_tf.explain import Ablation, contributions, mask_target, next_sentence_target, patch, sweep
from bert_tf.explain.attribution.target import Target
from bert_tf.explain.interventions.ablation import every_feed_forward, every_head, every_layer, every_token
from bert_tf.inference.bert import Bert
from bert_tf.inference.hooked_model import HookedModel
from bert_tf.layers.hook_points import HOOK_POINTS, blocked
from bert_tf.runtime import Runtime
from bert_tf.runtime.head_gradients import HEADS, positions_read
from bert_tf.runtime.layer_steps import LayerSteps
from tests.app.family_models import GOLDEN_FOLDERS, MODERN_FOLDER
from tests.conftest import store_in_bfloat16
from tests.layers.test_causal import make_reader

NAMES = ("roberta", "distilbert", "albert", "electra-discriminator", "electra-generator")
#: Architectures whose encoder layer is not BERT's.
OTHER_LAYERS = ("left-to-right", "two-one-way", "modernbert", "deberta")
POINTS = [point.name for point in HOOK_POINTS]


def on_openvino(folder):
    """The model of a folder, which runs on OpenVINO."""
    config, tokenizer, stored = read_stored(folder)
    return Bert(config, tokenizer, stored, Runtime(stored, engine="openvino"))


def both(folder):
    """(the steps of a folder's model on OpenVINO, its Keras model with hooks)."""
    bert = on_openvino(folder)
    assert type(bert.steps()) is LayerSteps
    return bert.steps(), HookedModel(bert)


def states_of(hooked, rows=2, tokens=9):
    random, config = np.random.default_rng(0), hooked.config
    ids = random.integers(5, config.vocab_size, (rows, tokens), np.int32)
    segments = random.integers(0, max(1, config.type_vocab_size), (rows, tokens), np.int32)
    return ids, segments


def check_equal(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), atol=1e-5, rtol=1e-5)


def check_steps(folder, points=POINTS):
    steps, hooked = both(folder)
    hidden = states_of(hooked)
    states = steps.states(*hidden)
    for ours, theirs in zip(states, hooked.states(*hidden), strict=True):
        check_equal(ours, theirs)
    for layer in range(steps.config.num_hidden_layers):
        theirs = hooked.values(layer, states[layer], points)
        for point, value in steps.values(layer, states[layer], points).items():
            check_equal(value, theirs[point])
    check_equal(steps.finish(states[1], 1), states[-1])
    heads = {"mlm", "nsp", "sop", "replaced"} & set(hooked.layers)
    for head in heads:
        x = states[-1][0] if head == "mlm" else states[-1]
        name = f"{head}_log_probabilities"
        check_equal(getattr(steps, name)(x), getattr(hooked, name)(x))
    for head in heads & HEADS:
        target = Target(3 if head == "mlm" else None, 1, "", is_sentence_order=head == "sop")
        assert target.head == head
        for ours, theirs in zip(steps.odds_gradient(states[-1], target), hooked.odds_gradient(states[-1], target)):
            check_equal(ours, theirs)
        reached = np.flatnonzero(np.any(ours[0], axis=-1))
        np.testing.assert_array_equal(positions_read(steps._model, target, len(ours[0])), reached)
    return heads


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """A function of the name of an architecture to the folder of a small random model."""
    home = tmp_path_factory.mktemp("architectures")

    def folder(name):
        if name == "modernbert":
            return MODERN_FOLDER
        if name in NAMES or name == "deberta":
            return GOLDEN_FOLDERS / name
        if not (home / name).exists():
            reader = make_reader(name)
            checkpoints.save(home / name, reader.config, reader.tokenizer, reader.model)
        return home / name

    return folder


@pytest.mark.parametrize("name", [*NAMES, *OTHER_LAYERS])
def test_every_value_of_every_architecture_equals_the_keras_model(name, folder_of):
    assert check_steps(folder_of(name))


@pytest.mark.parametrize("name", OTHER_LAYERS)
def test_values_are_replaced_in_layers_of_every_kind(name, folder_of):
    """Every value in part, then some as a whole; an axis of one entry is for all heads and both stacks."""
    steps, hooked = both(folder_of(name))
    random = np.random.default_rng(1)
    for layer, state in enumerate(steps.states(*states_of(hooked))[:-1]):
        own = steps.values(layer, state, POINTS)
        parts = {
            point: (random.random(value.shape) < 0.3, random.standard_normal(value.shape).astype(np.float32))
            for point, value in own.items()
        }
        one, length = np.full((1, 1, 1, 1), 0.5, np.float32), state.shape[1]
        first_head = np.arange(steps.config.num_attention_heads)[:, None, None] == 0
        wholes = {"v": (None, parts["v"][1]), "z": (first_head[None], one), "mlp_out": (None, parts["mlp_out"][1])}
        for replace in (parts, wholes):
            ours, theirs = (
                model.values(layer, state, POINTS, blocked([2], length), replace) for model in (steps, hooked)
            )
            for point in POINTS:
                np.testing.assert_allclose(ours[point], theirs[point], atol=2e-5, rtol=1e-5, err_msg=point)
            assert np.abs(ours["resid_post"] - own["resid_post"]).max() > 1e-3
        check_equal(steps.unchanged(layer, state), hooked.unchanged(layer, state))


def test_what_follows_the_normalisation_back_names_the_layer_that_has_another(folder_of):
    with pytest.raises(InputError, match="The decomposition needs BERT's encoder layer.* bert has ModernEncoderLayer"):
        on_openvino(folder_of("modernbert")).steps().check_post_norm("The decomposition")
    steps = on_openvino(folder_of("deberta")).steps()
    steps.check_post_norm("The decomposition")
    with pytest.raises(InputError, match="attention scores that compare the contents .* in bert they also"):
        steps.check_post_norm("DeepLift", through_scores=True)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_every_value_of_every_stored_dtype_equals_the_keras_model(tiny_bert, tmp_path, dtype):
    folder = checkpoints.save(tmp_path / "m", tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model, dtype=dtype)
    assert check_steps(folder) == {"mlm", "nsp"}


def test_weights_stored_in_bfloat16_are_shared_and_computed_in_float32(tiny_folder, tmp_path):
    folder = store_in_bfloat16(shutil.copytree(tiny_folder, tmp_path / "m"))
    assert check_steps(folder)
    steps = both(folder)[0]
    steps.states(*states_of(steps))
    stored = [(steps._model.weights[name], part, tensor.data) for (name, part), tensor in steps._tensors.items()]
    assert {weight.values.dtype.name for weight, _, _ in stored} == {"bfloat16"}
    assert all(np.shares_memory(data, getattr(weight, part)) for weight, part, data in stored)


@pytest.fixture(scope="module")
def saved(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps") / "m"
    return checkpoints.save(folder, tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model, dtype="int8")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_replaced_value_acts_as_in_the_keras_model(saved, point, everywhere):
    steps, hooked = both(saved)
    state = steps.states(*states_of(hooked))[1]
    whole = steps.values(1, state, (point,))[point]
    random = np.random.default_rng(1)
    values = random.standard_normal(whole.shape).astype(np.float32)
    mask = None if everywhere else random.random(whole.shape) < 0.5
    after = tuple(POINTS[POINTS.index(point) :])
    ours, theirs = (model.values(1, state, after, replace={point: (mask, values)}) for model in (steps, hooked))
    for name in after:
        check_equal(ours[name], theirs[name])
    expected = values if everywhere else np.where(mask, values, whole)
    check_equal(ours[point], expected)
    assert np.abs(ours["resid_post"] - steps.layer(1, state)).max() > 1e-3


def test_one_state_with_many_replacements_is_a_batch(saved):
    steps, hooked = both(saved)
    state = steps.states(*states_of(hooked, rows=1))[0]
    heads = steps.config.num_attention_heads
    replace = {
        "z": (np.eye(heads, dtype=bool)[..., None, None], np.zeros((1, 1, 1, 1), np.float32)),
        "mlp_out": (np.arange(heads)[:, None, None] == 1, np.ones((1, 1, 1), np.float32)),
    }
    bias = blocked([2], state.shape[1], [(0, 1)])
    ours = steps.layer(0, state, bias, replace)
    assert len(ours) == heads
    check_equal(ours, hooked.layer(0, state, bias, replace))
    assert np.abs(ours - steps.layer(0, state, replace=replace)).max() > 1e-4


def test_layers_stored_in_other_types_have_steps_of_their_own(saved):
    steps, hooked = both(saved)
    states = steps.states(*states_of(hooked))
    weights = dict(steps._model.weights)
    for name, weight in weights.items():
        if name.startswith("bert.encoder.layer.1."):
            weights[name] = type(weight)(weight.float32())
    mixed = LayerSteps(type(steps._model)(steps.config, steps._model.bert_heads, weights))
    for ours, theirs in zip(mixed.states(*states_of(hooked)), states, strict=True):
        check_equal(ours, theirs)


def test_ablation_patching_and_contributions_give_the_numbers_of_the_keras_model(saved):
    on_steps, on_keras = (on_openvino(saved) for _ in range(2))
    vars(on_keras)["_steps"] = on_keras.hooked()
    texts = ("the cat ate the carrot", "the bunny sat")
    trace = on_steps.trace(*texts, mask=(2, 3))
    ablations = [
        *every_head(on_steps.config),
        *every_layer(on_steps.config),
        *every_feed_forward(on_steps.config),
        *every_token(trace),
        Ablation(links=((1, 2),), attention_layers=(1,)),
    ]
    ours, theirs = (sweep(bert, trace, ablations) for bert in (on_steps, on_keras))
    for name in ("log_probability_changes", "divergences", "nsp_changes"):
        check_equal(getattr(ours, name), getattr(theirs, name))
    other = on_steps.trace("the bunny ate the carrot", texts[1], mask=(2, 3))
    for component in ("hidden_state", "attention", "feed_forward", "head"):
        ours, theirs = (
            patch(bert, trace, mask_target(bert, trace, position=2), other, component) for bert in (on_steps, on_keras)
        )
        check_equal(ours.scores, theirs.scores)
    for target in (mask_target(on_steps, trace, position=3), next_sentence_target(on_steps, trace, follows=False)):
        ours, theirs = (contributions(bert, trace, target) for bert in (on_steps, on_keras))
        for name in ("score", "input", "heads", "feed_forward", "biases", "total"):
            check_equal(getattr(ours, name), getattr(theirs, name))


def test_models_that_steps_cannot_run_use_their_keras_model(tiny_bert, saved):
    config, tokenizer, stored = read_stored(saved)
    assert type(tiny_bert.steps()) is HookedModel  # its weights may change
    on_tensorflow = Bert(config, tokenizer, stored, Runtime(stored, engine="tensorflow"))
    assert on_tensorflow.steps() is on_tensorflow.hooked()
    # A runtime of another kind says nothing about an engine.
    other = Bert(config, tokenizer, stored, types.SimpleNamespace(precision="float32"))
    assert other.steps() is other.hooked()
