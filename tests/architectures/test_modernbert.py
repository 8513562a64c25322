"""ModernBERT: equal to Transformers at short and long length, on both engines; settings, sizes, tokenizer, folders."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.config import BertConfig, ConfigError
from bert_tf.flops import flops_by_part
from bert_tf.inference.bert import load
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.parameters import parameter_counts
from bert_tf.runtime import Runtime
from bert_tf.tokenizers import ModernBertTokenizer, read_tokenizer
from tests.conftest import outputs_of

GOLDEN = Path(__file__).parent.parent / "golden"
FOLDER = GOLDEN / "modernbert"
INPUTS = ("token_ids", "segment_ids", "padding_mask")


@pytest.fixture(scope="module")
def stored():
    return dict(np.load(FOLDER.with_suffix(".npz")))


@pytest.fixture(scope="module")
def model():
    return checkpoints.read(FOLDER)[2]


@pytest.fixture(scope="module")
def bert():
    return load(FOLDER)


def test_every_output_equals_transformers(model, stored):
    real = stored["padding_mask"].astype(bool)
    outputs = view(model, ("mlm_logits_all", "hidden_states", "attentions"))({name: stored[name] for name in INPUTS})
    np.testing.assert_allclose(
        np.asarray(outputs["mlm_logits_all"])[real], stored["mlm_logits_all"][real], atol=1e-5, rtol=0
    )
    for index, states in enumerate(outputs["hidden_states"]):
        np.testing.assert_allclose(
            np.asarray(states)[real], stored[f"hidden_states.{index}"][real], atol=1e-5, rtol=0, err_msg=str(index)
        )
    for index, maps in enumerate(outputs["attentions"]):  # [B, N, T, T]: rows of padded queries mean nothing
        expected = stored[f"attentions.{index}"].swapaxes(1, 2)[real]
        np.testing.assert_allclose(np.asarray(maps).swapaxes(1, 2)[real], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("engine", ["openvino", "tensorflow"])
def test_2048_tokens_equal_transformers_on_both_engines(model, stored, engine):
    ids = stored["long_ids"].astype(np.int32)
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    states = Runtime(model, engine=engine).run(batch, ("sequence_output",))["sequence_output"]
    np.testing.assert_allclose(states[0, stored["long_positions"]], stored["long_states"], atol=1e-5, rtol=0)


@pytest.mark.parametrize("engine", ["openvino", "tensorflow"])
def test_both_engines_equal_the_keras_model(model, stored, engine):
    batch = {name: stored[name].astype(np.int32) for name in INPUTS}
    batch["mask_positions"] = np.array([[1, 5, 12], [0, 8, 3]], np.int32)
    outputs = (*outputs_of(model.bert_heads), "queries", "keys", "values")
    wanted, actual = view(model, outputs)(batch), Runtime(model, engine=engine).run(batch, outputs)
    for name in outputs:
        np.testing.assert_allclose(np.asarray(actual[name]), np.asarray(wanted[name]), atol=1e-5, rtol=0, err_msg=name)


def test_the_openvino_graph_for_large_batches_equals_the_keras_model(model):
    ids = np.random.default_rng(1).integers(5, model.bert_config.vocab_size, (3, 150)).astype(np.int32)
    mask = np.ones_like(ids)
    mask[1, 90:] = 0
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
    wanted = view(model, ("sequence_output",))(batch)["sequence_output"]
    runtime = Runtime(model)
    assert runtime.engine == "openvino"
    states = runtime.run(batch, ("sequence_output",))["sequence_output"]
    real = mask.astype(bool)
    np.testing.assert_allclose(states[real], np.asarray(wanted)[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("rows, tokens", [(3, 150), (1, 301), (2, 997), (1, 2048)])
def test_local_attention_in_blocks_equals_all_scores(bert, rows, tokens):
    """Texts over five windows (of 8 here): the graph in blocks against the graph that computes every score."""
    ids = np.random.default_rng(tokens).integers(5, bert.config.vocab_size, (rows, tokens)).astype(np.int32)
    mask = np.ones_like(ids)
    mask[1:, tokens // 2 :] = 0
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
    assert rows * tokens > 256 and tokens > 5 * bert.config.local_attention  # what the engine takes blocks for
    runtime = Runtime(bert.weights)
    states = runtime.run(batch, ("sequence_output",))["sequence_output"]
    whole = runtime.run(batch, ("sequence_output", "attentions"))["sequence_output"]
    real = mask.astype(bool)
    np.testing.assert_allclose(states[real], whole[real], atol=1e-5, rtol=0)


def test_eight_bits_are_close(model, stored):
    batch = {name: stored[name].astype(np.int32) for name in INPUTS}
    exact, rounded = (
        Runtime(model, precision=precision).run(batch, ("sequence_output",))["sequence_output"]
        for precision in ("float32", "int8")
    )
    assert 0 < np.abs(exact - rounded).max() < 0.2


def test_a_local_layer_attends_to_half_its_window_on_each_side(bert):
    trace = bert.trace("one two three four five six seven")
    queries, keys = np.indices(trace.attentions.shape[-2:])
    far = np.abs(queries - keys) > bert.config.local_attention // 2
    assert far.any()
    for layer, maps in enumerate(trace.attentions):
        assert (maps[:, far].max() == 0) == (layer % 3 != 0)
        assert (maps[:, ~far] > 0).all()


def test_hooks_show_a_pre_norm_layer(bert):
    trace, cache = bert.hooked().run_with_cache("The [MASK] slept.")
    last = bert.config.num_hidden_layers - 1
    for index in range(last + 1):
        at = {
            name: cache[f"layer_{index}.{name}"]
            for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")
        }
        np.testing.assert_allclose(at["resid_mid"], at["resid_pre"] + at["attn_out"], atol=1e-5)
        total = at["resid_mid"] + at["mlp_out"]
        if index == last:
            total = np.asarray(bert.model.bert_layers[f"layer_{last}"].final_norm(total))
        np.testing.assert_allclose(at["resid_post"], total, atol=1e-5)
        q, k = cache[f"layer_{index}.q"], cache[f"layer_{index}.k"]
        scores = q @ k.swapaxes(2, 3) / np.sqrt(bert.config.head_size)
        seen = cache[f"layer_{index}.pattern"] > 0
        np.testing.assert_allclose(cache[f"layer_{index}.scores"][seen], scores[seen], atol=1e-4)
    np.testing.assert_allclose(trace.logits, bert.trace("The [MASK] slept.").logits, atol=1e-4)


def test_the_steps_of_the_layers_are_compiled_for_each_kind_of_layer(bert):
    trace = bert.trace("The man [MASK] to the store.")
    states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
    for index, state in enumerate(states):
        np.testing.assert_allclose(state[0], trace.hidden_states[index], atol=1e-4, err_msg=str(index))


@pytest.mark.parametrize(
    "size, total",
    [("base", 149_014_272), ("large", 394_781_696)],  # as Transformers counts ModernBertModel
)
def test_released_sizes_have_the_parameters_that_transformers_counts(size, total):
    config = BertConfig.named(size, "modernbert")
    assert parameter_counts(config, ())["total"] == total
    assert (config.size_name, config.max_tokens) == (size, 8192)


def test_the_gate_counts_as_work():
    config, tokens = BertConfig.named("base", "modernbert"), 100
    flops = flops_by_part(config, tokens)
    assert flops["feed_forward"] == 22 * 6 * tokens * 768 * 1152
    assert flops["attention"] == 22 * (8 * tokens * 768 * 768 + 4 * tokens * tokens * 768)


def test_variables_are_as_many_as_arithmetic_says(model):
    counted = sum(int(np.prod(variable.shape)) for variable in named_variables(model).values())
    assert counted == parameter_counts(model.bert_config, model.bert_heads)["total"] == model.count_params()


# Every key of answerdotai/ModernBERT-base's config.json.
RELEASED = {
    "architectures": ["ModernBertForMaskedLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 50281,
    "classifier_activation": "gelu",
    "classifier_bias": False,
    "classifier_dropout": 0.0,
    "classifier_pooling": "mean",
    "cls_token_id": 50281,
    "decoder_bias": True,
    "deterministic_flash_attn": False,
    "embedding_dropout": 0.0,
    "eos_token_id": 50282,
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "gradient_checkpointing": False,
    "hidden_activation": "gelu",
    "hidden_size": 768,
    "initializer_cutoff_factor": 2.0,
    "initializer_range": 0.02,
    "intermediate_size": 1152,
    "layer_norm_eps": 1e-05,
    "local_attention": 128,
    "local_rope_theta": 10000.0,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "mlp_dropout": 0.0,
    "model_type": "modernbert",
    "norm_bias": False,
    "norm_eps": 1e-05,
    "num_attention_heads": 12,
    "num_hidden_layers": 22,
    "pad_token_id": 50283,
    "position_embedding_type": "absolute",
    "sep_token_id": 50282,
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "transformers_version": "4.47.0.dev0",
    "vocab_size": 50368,
}


def test_the_released_settings_are_read():
    assert BertConfig.from_dict(RELEASED) == BertConfig.named("base", "modernbert")


def test_the_settings_of_transformers_5_are_read():
    values = {name: value for name, value in RELEASED.items() if "rope" not in name and "every" not in name}
    values["layer_types"] = ["sliding_attention" if index % 3 else "full_attention" for index in range(22)]
    values["rope_parameters"] = {
        "full_attention": {"rope_type": "default", "rope_theta": 160000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
    }
    assert BertConfig.from_dict(values) == BertConfig.named("base", "modernbert", local_rope_theta=5000.0)


def test_rope_scaling_is_read_as_transformers_merges_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BertConfig.from_dict({**RELEASED, "rope_scaling": None}) == BertConfig.named("base", "modernbert")
    scaled = {**RELEASED, "rope_scaling": {"rope_type": "default", "rope_theta": 5000.0}}
    both = {"global_rope_theta": 5000.0, "local_rope_theta": 5000.0}
    assert BertConfig.from_dict(scaled) == BertConfig.named("base", "modernbert", **both)


@pytest.mark.parametrize(
    "change, word",
    [
        ({"norm_bias": True}, "norm_bias"),
        ({"classifier_bias": True}, "classifier_bias"),
        ({"local_attention": 0}, "local_attention"),
        ({"layer_types": ["sliding_attention", "full_attention"], "num_hidden_layers": 2}, "layer_types"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 values, and num_hidden_layers is"),
        ({"layer_types": ["full_attention", "chunked_attention"], "num_hidden_layers": 2}, "'chunked_attention'"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1.0}}}, "yarn"),
        ({"rope_parameters": {"full_attention": {"type": "yarn"}}}, "yarn"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "'factor'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
    ],
)
def test_another_network_is_refused_by_name(change, word):
    with pytest.raises(ConfigError, match=word):
        BertConfig.from_dict({**RELEASED, **change})


def test_an_encoder_alone_is_read_whatever_the_keys_of_heads_say():
    keys = {"classifier_activation": "silu", "classifier_bias": True, "decoder_bias": False}
    encoder = BertConfig.from_dict({**RELEASED, **keys, "architectures": ["ModernBertModel"]})
    assert encoder == BertConfig.named("base", "modernbert")
    for key, value in keys.items():
        with pytest.raises(ConfigError, match=key):
            BertConfig.from_dict({**RELEASED, key: value})
    with pytest.raises(ConfigError, match="norm_bias"):
        BertConfig.from_dict({**RELEASED, "norm_bias": True, "architectures": ["ModernBertModel"]})


def test_bert_has_no_window():
    with pytest.raises(ConfigError, match="local_attention"):
        BertConfig.tiny(local_attention=128)


def test_the_tokenizer_equals_transformers():
    tokenizer = read_tokenizer(FOLDER)
    golden = json.loads((GOLDEN / "modernbert_tokens.json").read_text())
    assert isinstance(tokenizer, ModernBertTokenizer)
    for case in golden["texts"]:
        assert tokenizer.tokenize(case["text"]).ids.tolist() == case["ids"], case["text"]
    for case in golden["pairs"]:
        text_a, text_b, most = case["pair"]
        assert tokenizer.encode(text_a, text_b, most).token_ids.tolist() == case["ids"], case["pair"]


def test_a_saved_model_is_the_same_again(bert, model, tmp_path):
    checkpoints.save(tmp_path, bert.config, bert.tokenizer, model)
    again = load(tmp_path)
    assert again.config == bert.config and again.tokenizer.vocab == bert.tokenizer.vocab
    text = ("The [MASK] went.", "He came back.")
    np.testing.assert_array_equal(again.trace(*text).logits, bert.trace(*text).logits)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "checksums.json",
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["architectures"] == ["ModernBertForMaskedLM"]
    assert stored["global_attn_every_n_layers"] == 3 and stored["norm_bias"] is False


def test_bfloat16_and_eight_bits_are_stored(bert, model, tmp_path):
    for dtype, most in (("float16", 1e-2), ("int8", 0.3)):
        checkpoints.save(tmp_path / dtype, bert.config, bert.tokenizer, model, dtype=dtype)
        logits = load(tmp_path / dtype).trace("The [MASK] went.").logits
        assert np.abs(logits - bert.trace("The [MASK] went.").logits).max() < most


def test_a_text_of_2000_tokens_is_read_whole(bert):
    trace = bert.trace("a " * 1900 + "[MASK]", attentions=False)
    assert bert.max_length == 2304 and trace.truncated.tokens_a == 0 and trace.length > 1900
    assert bert.fill_mask(trace)


def test_random_weights_have_every_variable():
    config = BertConfig.named(
        "base",
        "modernbert",
        vocab_size=60,
        pad_token_id=0,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=24,
        num_hidden_layers=2,
        max_position_embeddings=32,
        local_attention=4,
    )
    model = build_pretraining_model(config)
    assert "bert.encoder.layer.0.attention.LayerNorm.weight" not in named_variables(model)
    assert "bert.encoder.LayerNorm.weight" in named_variables(model)
    assert not any(name.endswith(".bias") and name != "cls.predictions.bias" for name in named_variables(model))
