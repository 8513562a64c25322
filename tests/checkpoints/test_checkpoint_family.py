"""Family members in files: own folder, export to Transformers, Google's checkpoints, the registry."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import transformers

from bert_tf import checkpoints, load
from bert_tf.architectures import ARCHITECTURES
from bert_tf.checkpoints import CheckpointError
from bert_tf.checkpoints.model_checksums import write_model_checksums
from bert_tf.checkpoints.tensor_names import canonical_name, tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.parameters import OUTPUT_BIAS, OUTPUT_TABLE, parameter_counts
from bert_tf.runtime import Runtime

GOLDEN = Path(__file__).parents[1] / "golden" / "family"
NAMES = ("roberta", "distilbert", "albert", "electra-discriminator", "electra-generator")


def same_weights(one, other):
    first, second = named_variables(one), named_variables(other)
    assert first.keys() == second.keys() and one.bert_heads == other.bert_heads
    for name, variable in first.items():
        assert np.array_equal(np.asarray(variable), np.asarray(second[name])), name


def check_masked_words(tokenizer, model, theirs):
    """Compares the logits of a text with those of a torch model; returns the inputs and Transformers' logits."""
    import torch

    ids = tokenizer.encode("The licence, a work.").token_ids[None]
    with torch.no_grad():
        outputs = theirs.eval()(input_ids=torch.tensor(ids.astype(np.int64)))
    logits = outputs.get("prediction_logits", outputs.get("logits")).numpy()
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    ours = view(model, ("mlm_logits_all",))(inputs)["mlm_logits_all"]
    np.testing.assert_allclose(ours, logits, atol=1e-5, rtol=0)
    return inputs, logits


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_read_again(name, tmp_path):
    config, tokenizer, model = checkpoints.read(GOLDEN / name)
    checkpoints.save(tmp_path / "own", config, tokenizer, model)
    again_config, again_tokenizer, again = checkpoints.read(tmp_path / "own")
    assert again_config == config and again_tokenizer.vocab == tokenizer.vocab
    same_weights(model, again)


@pytest.mark.parametrize("name", NAMES)
def test_exported_to_transformers_with_equal_outputs(name, tmp_path):
    import torch

    config, tokenizer, model = checkpoints.read(GOLDEN / name)
    checkpoints.save(tmp_path / "hf", config, tokenizer, model)
    kind = json.loads((tmp_path / "hf" / "config.json").read_text())["architectures"][0]
    theirs, report = getattr(transformers, kind).from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"]
    assert all("pooler" in key for key in report["unexpected_keys"])  # RobertaForMaskedLM has none
    stored = np.load(GOLDEN / f"{name}.npz")
    inputs = {"input_ids": torch.tensor(stored["token_ids"]), "attention_mask": torch.tensor(stored["padding_mask"])}
    if config.type_vocab_size:
        inputs["token_type_ids"] = torch.tensor(stored["segment_ids"])
    with torch.no_grad():
        outputs = theirs.eval()(**inputs)
    logits = outputs.get("prediction_logits", outputs.get("logits")).numpy()
    real = stored["padding_mask"].astype(bool)
    wanted = stored["replaced_logits" if logits.ndim == 2 else "mlm_logits_all"]
    np.testing.assert_allclose(logits[real], wanted[real], atol=1e-5, rtol=0)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    text = "The licence, a work."
    assert loaded(text, add_special_tokens=False).input_ids == tokenizer.tokenize(text).ids.tolist()


@pytest.mark.parametrize("name", ["roberta", "electra-generator"])
def test_the_masked_word_head_computes_gelu_whatever_the_layers_compute(name, tmp_path, edit_json):
    import torch

    shutil.copytree(GOLDEN / name, tmp_path / "relu")
    edit_json(tmp_path / "relu" / "config.json", hidden_act="relu")
    bert, theirs = load(tmp_path / "relu"), transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "relu").eval()
    trace = bert.trace("The licence, a work.", mask=(2,))
    with torch.no_grad():
        logits = theirs(input_ids=torch.tensor(trace.token_ids[None].astype(np.int64))).logits.numpy()
    inputs = {
        "token_ids": trace.token_ids[None],
        "segment_ids": np.zeros((1, trace.length), np.int32),
        "padding_mask": np.ones((1, trace.length), np.int32),
    }
    ours = view(bert.model, ("mlm_logits_all",))(inputs)["mlm_logits_all"]
    np.testing.assert_allclose(ours, logits, atol=1e-5, rtol=0)
    engine = bert.runtime.run(inputs | {"mask_positions": np.zeros((1, 0), np.int32)}, ("mlm_logits_all",))
    np.testing.assert_allclose(engine["mlm_logits_all"], logits, atol=1e-5, rtol=0)


UNTIED = ("../bert_tiny_random", "roberta", "xlm-roberta", "camembert", "distilbert", "albert", "electra-generator")


def untied(name):
    """Settings, tokenizer and model of a member with an MLM head that has a random table and bias of its own."""
    config, tokenizer, tied = checkpoints.read(GOLDEN / name)
    config = config.replace(tie_word_embeddings=False)
    model, known, rng = build_pretraining_model(config, heads=("mlm",)), named_variables(tied), np.random.default_rng(0)
    for name, variable in named_variables(model).items():
        is_own = name in (OUTPUT_TABLE, OUTPUT_BIAS)
        variable.assign(rng.normal(0, 0.5, variable.shape) if is_own else np.asarray(known[name]))
    return config, tokenizer, model


@pytest.mark.parametrize("name", UNTIED)
def test_a_masked_word_head_that_is_not_tied_is_exported_with_equal_outputs(name, tmp_path):
    config, tokenizer, model = untied(name)
    checkpoints.save(tmp_path / "hf", config, tokenizer, model)
    theirs, report = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"]
    check_masked_words(tokenizer, model, theirs)
    same_weights(model, checkpoints.read(tmp_path / "hf")[2])


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("name", ["../bert_tiny_random", "albert"])
def test_a_masked_word_head_that_is_not_tied_is_read_in_fewer_bits_and_in_shards(name, dtype, tmp_path):
    config, tokenizer, model = untied(name)
    checkpoints.save(tmp_path / "own", config, tokenizer, model, dtype, max_shard_bytes=1)
    again = checkpoints.read(tmp_path / "own")
    assert again[0] == config and again[2].bert_heads == {"mlm"}
    for key in (OUTPUT_TABLE, OUTPUT_BIAS):
        stored, wanted = (np.asarray(named_variables(one)[key]) for one in (again[2], model))
        np.testing.assert_allclose(stored, wanted, atol=0.01, rtol=0, err_msg=key)


@pytest.mark.parametrize("name", ["roberta", "xlm-roberta", "camembert"])
@pytest.mark.parametrize("prefix", ["roberta.", ""])
def test_a_pooler_that_the_classifier_does_not_read_is_left_out(name, prefix, tmp_path, caplog):
    """Most classifiers of the hub hold one beside the classifier's own dense layer."""
    import torch

    shutil.copytree(GOLDEN / name, tmp_path / "with")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "with", num_labels=3)
    torch.manual_seed(0)
    theirs = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    theirs.save_pretrained(tmp_path / "with")
    path = tmp_path / "with" / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    size = config.hidden_size
    pooler = {"weight": np.eye(size, dtype=np.float32), "bias": np.ones(size, np.float32)}
    tensors |= {f"{prefix}pooler.dense.{key}": value for key, value in pooler.items()}
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
    bert = load(tmp_path / "with")
    assert bert.heads == {"pooler"} and f"safetensors: {prefix}pooler.dense.bias ({size},) is left out" in caplog.text
    ids = bert.tokenizer.encode("The licence, a work.").token_ids
    with torch.no_grad():
        logits = theirs(input_ids=torch.tensor(ids[None].astype(np.int64))).logits.softmax(-1)[0].numpy()
    prediction = bert.task.predict(["The licence, a work."])[0]
    np.testing.assert_allclose(list(prediction["probabilities"].values()), logits, atol=1e-5, rtol=0)


def test_an_albert_with_embeddings_as_wide_as_its_layers_projects_them_too(tmp_path):
    import torch

    shutil.copytree(GOLDEN / "albert", tmp_path / "theirs")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "theirs")
    config.embedding_size = config.hidden_size
    torch.manual_seed(0)
    theirs = transformers.AlbertForPreTraining(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path / "theirs")
    bert = load(tmp_path / "theirs")
    assert bert.config.has_embedding_projection
    inputs, logits = check_masked_words(bert.tokenizer, bert.model, theirs)
    positions = inputs | {"mask_positions": np.arange(logits.shape[1], dtype=np.int32)[None]}
    for engine in ("openvino", "tensorflow"):
        actual = Runtime(bert.model, engine=engine).run(positions, ("mlm_logits",))["mlm_logits"]
        np.testing.assert_allclose(actual, logits, atol=1e-5, rtol=0, err_msg=engine)
    checkpoints.save(tmp_path / "ours", bert.config, bert.tokenizer, bert.model)
    _, report = transformers.AlbertForPreTraining.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    with pytest.raises(CheckpointError, match="embedding_size equals hidden_size.*write the format 'hf'"):
        checkpoints.convert(tmp_path / "ours", tmp_path / "google", to="google")
    path = tmp_path / "ours" / "model.safetensors"
    tensors = {key: value for key, value in safetensors.numpy.load_file(path).items() if "mapping_in" not in key}
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="embeddings_project.weight .* and 1 more is missing"):
        checkpoints.read(tmp_path / "ours")


def test_distilbert_ignores_the_epsilon_of_its_settings_as_transformers_does(tmp_path, edit_json):
    shutil.copytree(GOLDEN / "distilbert", tmp_path / "own")
    edit_json(tmp_path / "own" / "config.json", layer_norm_eps=0.1)
    bert, theirs = load(tmp_path / "own"), transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "own").eval()
    assert bert.config.layer_norm_eps == 1e-12
    check_masked_words(bert.tokenizer, bert.model, theirs)


def test_a_message_names_a_member_with_its_article(tmp_path):
    shutil.copytree(GOLDEN / "albert", tmp_path / "more")
    path = tmp_path / "more" / "model.safetensors"
    tensors = safetensors.numpy.load_file(path) | {"albert.scale.weight": np.zeros(2, np.float32)}
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="is not a tensor of an ALBERT model"):
        checkpoints.read(tmp_path / "more")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_without_the_models_prefix_is_read(name, tmp_path):
    config, tokenizer, model = checkpoints.read(GOLDEN / name)
    checkpoints.save(tmp_path / "own", config, tokenizer, model)
    path = tmp_path / "own" / "model.safetensors"
    prefix = f"{config.model_type}."
    tensors = {key.removeprefix(prefix): value for key, value in safetensors.numpy.load_file(path).items()}
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
    write_model_checksums(tmp_path / "own")
    same_weights(model, checkpoints.read(tmp_path / "own")[2])


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_every_name_finds_its_way_back(model_type):
    config = BertConfig.named("base", model_type)
    stored = [config.architecture.stored_name(name) for name in tensor_shapes(config)]
    assert len(set(stored)) == len(stored)
    assert [canonical_name(name, config.architecture) for name in stored] == list(tensor_shapes(config))


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_counts_by_arithmetic_are_those_of_the_tensors(model_type):
    for size, member in ((size, ARCHITECTURES[model_type]) for size in ARCHITECTURES[model_type].sizes):
        config = BertConfig.named(size, model_type)
        counted = sum(int(np.prod(shape)) for shape in tensor_shapes(config).values())
        assert counted == parameter_counts(config, member.heads)["total"]


@pytest.mark.parametrize("name", ["albert", "electra-discriminator", "electra-generator"])
def test_google_checkpoints_round_trip(name, tmp_path):
    done = checkpoints.convert(GOLDEN / name, tmp_path / "google", to="google")
    config, tokenizer, again = checkpoints.read(done.path)
    before, _, model = checkpoints.read(GOLDEN / name)
    same_weights(model, again)
    assert config == before


def test_googles_own_names_of_tensors(tmp_path):
    """As google-research/albert and google-research/electra name them in their released checkpoints."""
    import tensorflow as tf

    def names(member):
        checkpoints.convert(GOLDEN / member, tmp_path / member, to="google")
        return {name for name, _ in tf.train.list_variables(str(tmp_path / member / "bert_model.ckpt"))}

    group = "bert/encoder/transformer/group_1/inner_group_0"
    assert {
        "bert/encoder/embedding_hidden_mapping_in/kernel",
        f"{group}/attention_1/self/query/kernel",
        f"{group}/attention_1/output/dense/bias",
        f"{group}/LayerNorm/gamma",
        f"{group}/LayerNorm_1/beta",
        f"{group}/ffn_1/intermediate/dense/kernel",
        f"{group}/ffn_1/intermediate/output/dense/kernel",
        "bert/pooler/dense/kernel",
        "cls/predictions/output_bias",
        "cls/predictions/transform/dense/kernel",
        "cls/seq_relationship/output_weights",
        "bert/embeddings/word_embeddings",
    } <= names("albert")
    assert {
        "electra/embeddings_project/kernel",
        "electra/encoder/layer_1/attention/self/key/kernel",
        "discriminator_predictions/dense/kernel",
        "discriminator_predictions/dense_1/bias",
    } <= names("electra-discriminator")
    assert {
        "electra/embeddings/word_embeddings",
        "generator/encoder/layer_0/output/dense/kernel",
        "generator_predictions/dense/kernel",
        "generator_predictions/LayerNorm/gamma",
        "generator_predictions/output_bias",
    } <= names("electra-generator")


def test_an_electra_archive_without_settings_is_told_what_to_write(tmp_path):
    """As google-research/electra's archives unpack: `electra_small/electra_small.index`, .data-* and vocab.txt."""
    done = checkpoints.convert(GOLDEN / "electra-discriminator", tmp_path / "whole", to="google")
    archive = tmp_path / "electra_small"
    archive.mkdir()
    shutil.copy(done.path / "vocab.txt", archive)
    for path in done.path.glob("bert_model.ckpt.*"):
        shutil.copy(path, archive / path.name.replace("bert_model.ckpt", "electra_small"))
    message = (
        r"no settings: bert_config.json, albert_config.json or electra_config.json\. ELECTRA's archives have none: "
    )
    with pytest.raises(CheckpointError, match=message + r"write electra_config.json \(docs/reference/family.md"):
        checkpoints.read(archive)
    settings = json.loads((done.path / "electra_config.json").read_text())
    sizes = {name: settings[name] for name in documented()["small"]}
    positions = {"max_position_embeddings": settings["max_position_embeddings"]}
    (archive / "electra_config.json").write_text(json.dumps({**sizes, **positions}))
    same_weights(checkpoints.read(archive)[2], checkpoints.read(GOLDEN / "electra-discriminator")[2])


def documented():
    """The settings of ELECTRA's released checkpoints in docs/reference/family.md: dict size -> settings."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "family.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)\n```", text, re.DOTALL)
    return dict(zip(("small", "base", "large"), map(json.loads, blocks), strict=True))


@pytest.mark.parametrize("size", ["small", "base", "large"])
def test_the_documented_settings_are_those_of_electra_s_sizes(size, tmp_path):
    path = tmp_path / "electra_config.json"
    path.write_text(json.dumps(documented()[size]))
    assert BertConfig.from_json(path) == BertConfig.named(size, "electra")


def test_one_electra_checkpoint_holds_both_models(tmp_path):
    """The released ones do: each of the two is read out of it by what the settings say."""
    import tensorflow as tf

    for name in ("electra-discriminator", "electra-generator"):
        checkpoints.convert(GOLDEN / name, tmp_path / name, to="google")
    readers = [
        tf.train.load_checkpoint(str(tmp_path / name / "bert_model.ckpt"))
        for name in ("electra-generator", "electra-discriminator")
    ]
    # The later one's tables stay: the two share theirs in a released checkpoint.
    joined = {key: reader.get_tensor(key) for reader in readers for key in reader.get_variable_to_shape_map()}
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "electra-discriminator" / "bert_model.ckpt"),
        tensor_names=list(joined),
        shape_and_slices=[""] * len(joined),
        tensors=[tf.constant(value) for value in joined.values()],
    )
    same_weights(
        checkpoints.read(GOLDEN / "electra-discriminator")[2], checkpoints.read(tmp_path / "electra-discriminator")[2]
    )


def test_albert_of_google_computes_tanh_gelu_under_the_plain_name(tmp_path):
    done = checkpoints.convert(GOLDEN / "albert", tmp_path / "google", to="google")
    written = json.loads((done.path / "albert_config.json").read_text())
    assert written["hidden_act"] == "gelu"
    assert BertConfig.from_json(done.path / "albert_config.json").hidden_act == "gelu_new"


@pytest.mark.parametrize("to", ["google", "keras-nlp"])
def test_what_has_no_such_format_is_refused_in_one_sentence(to, tmp_path):
    with pytest.raises(CheckpointError, match="RoBERTa"):
        checkpoints.convert(GOLDEN / "roberta", tmp_path / "out", to=to)
    assert not (tmp_path / "out").exists()


def test_the_registry_knows_sizes_and_licences():
    known = {model.name: model for model in checkpoints.RELEASED}
    owners = {"roberta": "FacebookAI", "distilbert": "distilbert", "albert": "albert", "electra": "google"}
    others = [model for model in checkpoints.RELEASED if model.config.model_type != "bert"]
    listed = {model.name: model for model in others if model.is_listed}
    debertas = {"mdeberta-v3-base", *(f"deberta-v3-{size}" for size in ("xsmall", "small", "base", "large"))}
    modern = {"ModernBERT-base", "ModernBERT-large"}
    assert set(listed) == {"xlm-roberta-base", "xlm-roberta-large", "camembert-base", *debertas, *modern}
    for name, model in listed.items():
        heads = {"mlm", "replaced"} if name in debertas else {"mlm"}
        licence = "Apache-2.0" if name in modern else "MIT"
        assert model.licence == licence and model.heads == heads, name
    assert 149e6 < listed["ModernBERT-base"].parameters < 150e6
    assert listed["camembert-base"].config.vocab_size == 32005
    family = [model for model in others if not model.is_listed]
    assert len(family) == 18
    for model in family:
        member = model.name.split("-")[0]
        assert model.repo == f"{owners[member]}/{model.name}" and model.config.model_type == member
        assert model.licence == ("MIT" if member == "roberta" else "Apache-2.0"), model.name
    # As Transformers' RobertaForMaskedLM, whose weights the files are: without a pooler.
    assert known["roberta-base"].parameters == 124_697_433 and known["roberta-base"].heads == {"mlm"}
    assert known["electra-small-generator"].config.embedding_size == 128
    for name in ("distilbert-base-cased", "albert-xxlarge-v1", "electra-large-discriminator"):
        assert checkpoints.released(name).size_bytes == 4 * known[name].parameters
