"""RoBERTa, DistilBERT, ALBERT and ELECTRA: equal to Transformers, counted as published, the same on both engines."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.architectures import ARCHITECTURES
from bert_tf.config import BertConfig, ConfigError, UnknownSetting
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.parameters import parameter_counts
from bert_tf.runtime import Runtime
from tests.conftest import outputs_of

GOLDEN = Path(__file__).parent.parent / "golden" / "family"
HEADS = {
    "roberta": {"pooler", "mlm"},
    "xlm-roberta": {"mlm"},
    "camembert": {"mlm"},
    "distilbert": {"mlm"},
    "deberta": {"mlm", "replaced"},
    "albert": {"pooler", "mlm", "sop"},
    "electra-discriminator": {"replaced"},
    "electra-generator": {"mlm"},
}
INPUTS = ("token_ids", "segment_ids", "padding_mask")


@pytest.fixture(scope="module", params=HEADS)
def golden(request):
    """(name, config, model, stored inputs and outputs)"""
    config, _, model = checkpoints.read(GOLDEN / request.param)
    return request.param, config, model, dict(np.load(GOLDEN / f"{request.param}.npz"))


def flat(outputs):
    flattened = {}
    for name, value in outputs.items():
        items = {f"{name}.{i}": v for i, v in enumerate(value)} if isinstance(value, list) else {name: value}
        flattened.update({key: np.asarray(item) for key, item in items.items()})
    return flattened


def test_every_output_equals_transformers(golden):
    name, _, model, stored = golden
    assert model.bert_heads == HEADS[name]
    names = sorted({key.split(".")[0] for key in stored} - set(INPUTS))
    ours = flat(view(model, names)({key: stored[key] for key in INPUTS}))
    real = stored["padding_mask"].astype(bool)
    assert ours.keys() == stored.keys() - set(INPUTS)
    for key, actual in ours.items():
        expected = stored[key]
        if key.startswith("attentions"):  # [B, N, T, T]: rows of padded queries mean nothing
            actual, expected = actual.swapaxes(1, 2), expected.swapaxes(1, 2)
        if actual.shape[:2] == real.shape:
            actual, expected = actual[real], expected[real]
        np.testing.assert_allclose(actual, expected, atol=1e-5, rtol=0, err_msg=f"{name} {key}")


@pytest.mark.parametrize("engine", ["openvino", "tensorflow"])
def test_both_engines_equal_the_keras_model(golden, engine):
    name, config, model, stored = golden
    outputs = outputs_of(model.bert_heads)
    batch = {key: stored[key].astype(np.int32) for key in INPUTS}
    if "mlm" in model.bert_heads:
        batch["mask_positions"] = np.array([[1, 5, 12], [0, 8, 3]], np.int32)
    wanted, actual = flat(view(model, outputs)(batch)), flat(Runtime(model, engine=engine).run(batch, outputs))
    assert wanted.keys() == actual.keys()
    for key in wanted:
        np.testing.assert_allclose(actual[key], wanted[key], atol=1e-5, rtol=0, err_msg=f"{name} {key}")


def test_variables_are_as_many_as_arithmetic_says(golden):
    _, config, model, _ = golden
    counted = sum(int(np.prod(variable.shape)) for variable in named_variables(model).values())
    assert counted == parameter_counts(config, model.bert_heads)["total"]
    assert counted == view(model, outputs_of(model.bert_heads)).count_params()


@pytest.mark.parametrize(
    "model_type, size, heads, total",
    [
        ("roberta", "base", ("pooler",), 124_645_632),
        ("roberta", "large", ("pooler",), 355_359_744),
        ("xlm-roberta", "base", ("pooler",), 278_043_648),
        ("xlm-roberta", "large", ("pooler",), 559_890_432),
        ("camembert", "base", ("pooler",), 110_621_952),
        ("distilbert", "base", (), 66_362_880),
        ("albert", "base", ("pooler",), 11_683_584),
        ("albert", "large", ("pooler",), 17_683_968),
        ("albert", "xlarge", ("pooler",), 58_724_864),
        ("albert", "xxlarge", ("pooler",), 222_595_584),
        ("electra", "small", ("replaced",), 13_549_057),
        ("electra", "base", ("replaced",), 109_483_009),
        ("electra", "large", ("replaced",), 335_142_913),
        ("deberta-v2", "xsmall", (), 70_682_112),  # as Transformers counts DebertaV2Model
        ("deberta-v2", "small", (), 141_304_320),
        ("deberta-v2", "base", (), 183_831_552),
        ("deberta-v2", "large", (), 434_012_160),
    ],
)
def test_named_sizes_have_the_published_parameter_counts(model_type, size, heads, total):
    config = BertConfig.named(size, model_type)
    assert parameter_counts(config, heads)["total"] == total
    assert config.size_name == size


def test_layers_of_a_group_are_one_layer():
    config = BertConfig.named(
        "base",
        "albert",
        vocab_size=50,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=32,
        embedding_size=8,
        num_hidden_layers=4,
        num_hidden_groups=2,
    )
    layers = build_pretraining_model(config).bert_layers
    assert config.layer_groups == (0, 0, 1, 1)
    assert layers["layer_0"] is layers["layer_1"] and layers["layer_1"] is not layers["layer_2"]


def test_fewer_than_two_segments_are_not_looked_at(golden):
    name, config, model, stored = golden
    batch = {key: stored[key].astype(np.int32) for key in INPUTS}
    other = {**batch, "segment_ids": 1 - batch["segment_ids"]}
    encoder = view(model, ("sequence_output",))
    same = np.array_equal(*(np.asarray(encoder(one)["sequence_output"]) for one in (batch, other)))
    assert same == (config.type_vocab_size < 2)


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_settings_round_trip(model_type):
    for size in ARCHITECTURES[model_type].sizes:
        config = BertConfig.named(size, model_type)
        assert BertConfig.from_dict(config.to_hf_dict()) == config
        assert BertConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    "model_type, changes, word",
    [
        ("bert", {"embedding_size": 64}, "embedding_size"),
        ("bert", {"num_hidden_groups": 1}, "num_hidden_groups"),
        ("distilbert", {"type_vocab_size": 2}, "type_vocab_size"),
        ("albert", {"num_hidden_groups": 5}, "num_hidden_groups"),
        ("roberta", {"max_position_embeddings": 2}, "max_position_embeddings"),
        ("gpt2", {}, "gpt2"),
    ],
)
def test_settings_that_a_member_cannot_have_are_refused(model_type, changes, word):
    with pytest.raises(ConfigError, match=word):
        BertConfig.named("base", model_type, **changes)


@pytest.mark.parametrize("model_type", ["bert", "roberta", "distilbert", "modernbert", "deberta-v2"])
def test_an_embedding_size_of_a_file_that_is_the_hidden_size_says_nothing(model_type):
    file = BertConfig.named("base", model_type).to_hf_dict()
    assert BertConfig.from_dict({**file, "embedding_size": 768}) == BertConfig.named("base", model_type)
    assert BertConfig.from_dict({"embedding_size": 768}) == BertConfig()
    with pytest.raises(ConfigError, match="embedding_size"):
        BertConfig.from_dict({**file, "embedding_size": 64})


def test_an_unknown_setting_is_named_once_in_every_member():
    for number, model_type in enumerate(ARCHITECTURES):
        values = {"model_type": model_type, f"hidden_sise_{number}": 5}
        with pytest.warns(UnknownSetting, match=f"'hidden_sise_{number}' is not known.*Did you mean 'hidden_size'"):
            config = BertConfig.from_dict(values)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert BertConfig.from_dict(values) == config


def test_a_hint_is_given_only_for_a_similar_name():
    with pytest.warns(UnknownSetting) as caught:
        BertConfig.from_dict({"ln_type": "post"})
    assert "Did you mean" not in str(caught[0].message)


HARMLESS = {
    "num_labels": 3,
    "auto_map": {"AutoModel": "modeling.Model"},
    "xla_device": True,
    "model_max_length": 512,
    "adapters": {"adapters": {}},
    "use_return_dict": True,
    "eos_token_ids": 0,
    "export_model_type": "transformer",
    "sentence_transformers": {"version": "5.1"},
    "sbert_ce_default_activation_function": "torch.nn.Identity",
}


def test_keys_that_real_files_have_are_read_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BertConfig.from_dict(HARMLESS) == BertConfig()


@pytest.mark.parametrize(
    "key, value",
    [
        ("position_embedding_type", "relative_key"),
        ("add_cross_attention", True),
        ("is_decoder", True),
        ("is_encoder_decoder", True),
        ("pruned_heads", {"0": [1]}),
        ("relative_attention", True),
        ("rope_theta", 10000.0),
    ],
)
def test_a_key_that_changes_the_network_is_refused_by_name(key, value):
    with pytest.raises(ConfigError, match=f"{key} is .* changes the network"):
        BertConfig.from_dict({key: value})
    assert BertConfig.from_dict({"pruned_heads": {}, "is_decoder": False}) == BertConfig()


@pytest.mark.parametrize("name", ["gelu_10", "gelu_python", "quick_gelu", "silu", "swish", "tanh", "gelu_python_tanh"])
def test_activations_equal_transformers_on_every_runtime(name):
    import keras
    import openvino as ov
    import torch
    from transformers.activations import ACT2FN

    from bert_tf.layers.common import activation
    from bert_tf.runtime.graphs.bert import ACTIVATIONS as OPENVINO
    from bert_tf.runtime.numpy_ops import ACTIVATIONS as NUMPY

    own, x = BertConfig.from_dict({"hidden_act": name}).hidden_act, np.linspace(-12, 12, 97, dtype=np.float32)
    wanted = ACT2FN[name](torch.tensor(x)).numpy()
    parameter = ov.opset13.parameter([97], np.float32)
    graph = ov.compile_model(ov.Model([OPENVINO[own](parameter)], [parameter]), "CPU")
    values = keras.ops.convert_to_numpy(activation(own)(keras.ops.convert_to_tensor(x))), NUMPY[own](x), graph(x)[0]
    for value in values:
        np.testing.assert_allclose(value, wanted, atol=2e-6, rtol=0)


def test_a_model_file_with_an_inner_group_is_refused():
    with pytest.raises(ConfigError, match="inner_group_num"):
        BertConfig.from_dict({"model_type": "albert", "inner_group_num": 2})


def test_the_longest_input_ends_with_the_position_table():
    assert BertConfig.named("base", "roberta").max_tokens == 512
    assert BertConfig.base().max_tokens == 512


RELEASED_FILES = {
    "roberta": {
        "architectures": ["RobertaForMaskedLM"],
        "attention_probs_dropout_prob": 0.1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 768,
        "initializer_range": 0.02,
        "intermediate_size": 3072,
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514,
        "model_type": "roberta",
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "pad_token_id": 1,
        "type_vocab_size": 1,
        "vocab_size": 50265,
    },
    "distilbert": {
        "activation": "gelu",
        "architectures": ["DistilBertForMaskedLM"],
        "attention_dropout": 0.1,
        "dim": 768,
        "dropout": 0.1,
        "hidden_dim": 3072,
        "initializer_range": 0.02,
        "max_position_embeddings": 512,
        "model_type": "distilbert",
        "n_heads": 12,
        "n_layers": 6,
        "pad_token_id": 0,
        "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False,
        "tie_weights_": True,
        "transformers_version": "4.10.0.dev0",
        "vocab_size": 30522,
    },
    "albert": {
        "architectures": ["AlbertForMaskedLM"],
        "attention_probs_dropout_prob": 0,
        "bos_token_id": 2,
        "classifier_dropout_prob": 0.1,
        "down_scale_factor": 1,
        "embedding_size": 128,
        "eos_token_id": 3,
        "gap_size": 0,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0,
        "hidden_size": 768,
        "initializer_range": 0.02,
        "inner_group_num": 1,
        "intermediate_size": 3072,
        "layer_norm_eps": 1e-12,
        "layers_to_keep": [],
        "max_position_embeddings": 512,
        "model_type": "albert",
        "net_structure_type": 0,
        "num_attention_heads": 12,
        "num_hidden_groups": 1,
        "num_hidden_layers": 12,
        "num_memory_blocks": 0,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": 30000,
    },
    "electra": {
        "architectures": ["ElectraForPreTraining"],
        "attention_probs_dropout_prob": 0.1,
        "embedding_size": 768,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 768,
        "initializer_range": 0.02,
        "intermediate_size": 3072,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "model_type": "electra",
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "pad_token_id": 0,
        "summary_activation": "gelu",
        "summary_last_dropout": 0.1,
        "summary_type": "first",
        "summary_use_proj": True,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    },
}


@pytest.mark.parametrize("model_type", RELEASED_FILES)
def test_settings_with_every_key_of_the_released_files_are_read(model_type):
    assert BertConfig.from_dict(RELEASED_FILES[model_type]) == BertConfig.named("base", model_type)


def test_settings_that_differ_from_a_member_s_own_are_kept():
    first = {**RELEASED_FILES["albert"], "hidden_act": "gelu", "hidden_dropout_prob": 0.1}  # as ALBERT's first version
    config = BertConfig.from_dict(first)
    assert config == BertConfig.named("base", "albert", hidden_act="gelu", hidden_dropout_prob=0.1)
    assert config.to_hf_dict()["hidden_act"] == "gelu"
