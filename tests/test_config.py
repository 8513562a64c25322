"""BertConfig: validation, named sizes, and the two file formats."""

import dataclasses
import json

import pytest

from bert_tf.architectures import ARCHITECTURES
from bert_tf.checkpoints.tensor_names import tensor_shapes
from bert_tf.config import SIZES, BertConfig, ConfigError, UnknownSetting
from bert_tf.parameters import count_in_words, parameter_counts

ENCODER_AND_POOLER = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}


@pytest.mark.parametrize("name, total", ENCODER_AND_POOLER.items())
def test_named_sizes_have_the_published_parameter_counts(name, total):
    assert parameter_counts(BertConfig.named(name))["total"] == total
    assert getattr(BertConfig, name)().size_name == name


@pytest.mark.parametrize(
    "config, total",
    [
        (BertConfig.base(), 110_106_428),
        (BertConfig.base(vocab_size=28996), 108_932_934),
        (BertConfig.large(), 336_226_108),
    ],
)
def test_counts_with_both_heads(config, total):
    assert parameter_counts(config, ("pooler", "mlm", "nsp"))["total"] == total


def test_cased_counts():
    assert parameter_counts(BertConfig.base(vocab_size=28996))["total"] == 108_310_272
    assert parameter_counts(BertConfig.large(vocab_size=28996))["total"] == 333_579_264


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig().hidden_size = 1


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"hidden_size": 770}, ["770", "12"]),
        ({"vocab_size": 0}, ["vocab_size", "0"]),
        ({"vocab_size": True}, ["vocab_size"]),
        ({"num_hidden_layers": 2.5}, ["num_hidden_layers", "2.5"]),
        ({"hidden_dropout_prob": 1.0}, ["hidden_dropout_prob", "1.0"]),
        ({"layer_norm_eps": 0.0}, ["layer_norm_eps"]),
        ({"layer_norm_eps": float("nan")}, ["layer_norm_eps"]),
        ({"hidden_act": "swish"}, ["swish", "gelu"]),
        ({"hidden_act": ["gelu"]}, ["hidden_act", "['gelu']"]),
        ({"model_type": {"bert": 1}}, ["model_type", "{'bert': 1}"]),
        ({"num_hidden_layers": 20_000_000}, ["num_hidden_layers", "10,000"]),
        ({"vocab_size": 10**12}, ["vocab_size", "2,147,483,647"]),
        ({"pad_token_id": 40000}, ["40000", "30522"]),
        ({"tie_word_embeddings": None}, ["tie_word_embeddings is None", "True, False"]),
    ],
)
def test_refuses_impossible_values_by_name(changes, words):
    with pytest.raises(ConfigError) as caught:
        BertConfig(**changes)
    assert all(word in str(caught.value) for word in words)


def test_unknown_key_is_named_with_the_nearest_known_one():
    with pytest.warns(UnknownSetting, match="hidden_sise.*ignored.*hidden_size"):
        assert BertConfig.from_dict({"hidden_sise": 5}) == BertConfig()


@pytest.mark.parametrize(
    "values",
    [
        *({"model_type": "modernbert", "rope_parameters": value} for value in ([1], 5, {"full_attention": [1]})),
        *({"model_type": "modernbert", "rope_scaling": value} for value in ("yarn", [], 0)),
        *({"model_type": "modernbert", "layer_types": value} for value in (5, "full_attention", {}, [[1]])),
        *({"model_type": name, "hidden_size": value} for name in ARCHITECTURES for value in ([], "768", None)),
        {"model_type": "deberta-v2", "max_relative_positions": "256"},
        {"model_type": "gpt2"},
        {"position_embedding_type": "relative_key"},
        {"model_type": ["bert"]},
        {"hidden_act": ["gelu"]},
        {"is_decoder": True},
        {"model_type": "roberta", "is_decoder": True},
        {"add_cross_attention": True},
        {"model_type": "left-to-right", "add_cross_attention": True},
    ],
)
def test_other_architectures_are_refused(values):
    with pytest.raises(ConfigError):
        BertConfig.from_dict(values)


@pytest.mark.parametrize(
    "model_type, values, changes",
    [
        ("distilbert", {"activation": "gelu", "hidden_act": "relu"}, {}),
        ("distilbert", {"hidden_act": "relu", "activation": "gelu_new"}, {"hidden_act": "gelu_new"}),
        ("distilbert", {"intermediate_size": 99, "hidden_act": "relu"}, {}),
        ("distilbert", {"num_attention_heads": 6, "n_heads": 12}, {"num_attention_heads": 6}),
        ("modernbert", {"layer_norm_eps": 1e-12}, {}),
        ("modernbert", {"norm_eps": 1e-6, "layer_norm_eps": 1e-12}, {"layer_norm_eps": 1e-6}),
        ("modernbert", {"hidden_act": "relu", "hidden_dropout_prob": 0.5}, {}),
    ],
)
def test_berts_names_count_only_where_transformers_reads_them(model_type, values, changes):
    config = BertConfig.from_dict({"model_type": model_type, **values})
    assert config == BertConfig.named("base", model_type, **changes)
    assert BertConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_an_epsilon_that_a_file_does_not_state_is_that_of_transformers(model_type):
    wanted = {"modernbert": 1e-5, "deberta-v2": 1e-7}.get(model_type, 1e-12)
    assert BertConfig.from_dict({"model_type": model_type}).layer_norm_eps == wanted


def test_the_named_sizes_keep_the_published_epsilon():
    for model_type in ("roberta", "xlm-roberta", "camembert"):
        config = BertConfig.named("base", model_type)
        assert config.layer_norm_eps == 1e-5
        assert BertConfig.from_dict(config.to_hf_dict()) == config


@pytest.mark.parametrize("size", SIZES)
def test_both_formats_round_trip(size, tmp_path):
    config = BertConfig.named(size, vocab_size=1234)
    for values in (config.to_hf_dict(), config.to_google_dict()):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(values))
        assert BertConfig.from_json(path) == config


@pytest.mark.parametrize(
    "model_type, setting",
    [
        *((name, {"type_vocab_size": 0}) for name in ARCHITECTURES),
        ("albert", {"embedding_size": None}),
        ("albert", {"num_hidden_groups": None}),
        ("electra", {"embedding_size": None}),
    ],
)
def test_a_setting_that_differs_from_the_architectures_default_is_written(model_type, setting):
    architecture = ARCHITECTURES[model_type]
    config = BertConfig(**{**architecture.defaults, "model_type": model_type, **setting})
    files = [config.to_hf_dict()]
    if architecture.google_settings:
        files.append({**architecture.from_google(config.to_google_dict())})
    for values in files:
        assert None not in values.values()
        assert tensor_shapes(BertConfig.from_dict(values)) == tensor_shapes(config)


def test_no_key_is_written_that_an_architecture_does_not_have():
    for name in ("distilbert", "modernbert"):
        assert not {"type_vocab_size", "embedding_size", "num_hidden_groups"} & {
            *BertConfig.named("base", name).to_hf_dict()
        }


def test_hf_file_is_read_by_transformers_and_theirs_by_us():
    from transformers import BertConfig as Theirs

    theirs = Theirs(**BertConfig.mini().to_hf_dict())
    assert theirs.hidden_size == 256 and theirs.num_attention_heads == 4
    assert BertConfig.from_dict(theirs.to_dict()) == BertConfig.mini()


def test_a_file_that_is_not_json_is_named(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{oops")
    with pytest.raises(ConfigError, match="config.json is not a JSON file"):
        BertConfig.from_json(path)
    path.write_text("[]")
    with pytest.raises(ConfigError, match="a JSON array"):
        BertConfig.from_json(path)


def test_what_a_decoders_file_says_is_named_and_an_encoders_passed_over():
    with pytest.raises(ConfigError, match="is_decoder is True.*cannot be read"):
        BertConfig.from_dict({"is_decoder": True})
    assert BertConfig.from_dict({"is_decoder": False, "add_cross_attention": False}) == BertConfig()
    reader = BertConfig.named("base", "left-to-right")
    assert BertConfig.from_dict({**reader.to_hf_dict(), "is_decoder": True}) == reader


def test_googles_words_of_any_type_are_a_sentence(tmp_path):
    path = tmp_path / "albert_config.json"
    path.write_text(json.dumps({"hidden_act": ["gelu"]}))
    with pytest.raises(ConfigError, match="hidden_act"):
        BertConfig.from_json(path)


def test_few_parameters_are_counted_in_full():
    assert count_in_words(11_613) == "11,613 parameters"
    assert count_in_words(109_482_240) == "109.5 million parameters"


def test_an_encoder_of_foreign_code_is_refused_with_another_one():
    with pytest.raises(
        ConfigError, match="NeoBERT's layers are given only as code .* such as answerdotai/ModernBERT-base"
    ):
        BertConfig.from_dict({"model_type": "neobert", "hidden_size": 768})
