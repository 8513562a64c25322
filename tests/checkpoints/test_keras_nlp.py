"""keras_nlp itself reads presets of the members, and models of this project become its live backbones and tasks."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import CheckpointError
from bert_tf.errors import InputError
from bert_tf.models import build_encoder
from bert_tf.tokenizers import Tokenizer, read_tokenizer
from tests.architectures.test_architectures import GOLDEN
from tests.conftest import make_bert, randomise

BACKBONES = ["distilbert", "albert", "electra-discriminator", "roberta", "xlm-roberta", "deberta"]
TEXTS = ["The cat sat on a mat.", "A dog ran in the park"]


@pytest.fixture(scope="module")
def tiny():
    return make_bert(layers=2, seed=4)


def ids_of(bert, text=TEXTS[0]):
    packed = bert.tokenizer.encode(text, None)
    ids = np.asarray(packed.token_ids, np.int32)[None]
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids * 0 + 1}


def sequence_of(outputs):
    return np.asarray(outputs["sequence_output"] if isinstance(outputs, dict) else outputs)


def own_sequence(bert, batch):
    return bert.runtime.run(batch, ("sequence_output",))["sequence_output"]


def of_backbone(backbone, batch):
    return sequence_of(backbone({name: batch[name] for name in backbone.input}))


@pytest.mark.parametrize("name", BACKBONES)
def test_a_member_becomes_a_backbone_with_equal_outputs(name):
    bert = bert_tf.load(GOLDEN / name)
    backbone = bert.to_keras_nlp()
    batch = ids_of(bert, "a cat")
    np.testing.assert_allclose(of_backbone(backbone, batch), own_sequence(bert, batch), atol=2e-5)


@pytest.mark.parametrize("name", ["Bert", "Roberta", "DistilBert", "Albert", "Electra", "XLMRoberta", "DebertaV3"])
def test_their_weights_are_read_with_equal_outputs(name):
    import keras_nlp

    from bert_tf.checkpoints.formats.keras_nlp_backbone import backbone_config, backbone_tensors
    from bert_tf.checkpoints.stored_model import StoredModel
    from bert_tf.checkpoints.stored_tensor import Weight
    from bert_tf.checkpoints.tensor_names import heads_present
    from bert_tf.runtime import Runtime

    size = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24, "max_sequence_length": 20}
    size["vocab_size" if name == "Electra" else "vocabulary_size"] = 50
    size |= {"embedding_dim": 8} if name in ("Albert", "Electra") else {}
    size |= {"bucket_size": 4} if name == "DebertaV3" else {}
    backbone = getattr(keras_nlp.models, f"{name}Backbone")(**size)
    rng = np.random.default_rng(0)
    for variable in backbone.weights:
        variable.assign(rng.normal(variable.name == "gamma", 0.3, variable.shape))
    config = backbone_config(type(backbone).__name__, backbone.get_config(), "here")
    tensors = backbone_tensors(backbone, config)
    weights = {key: Weight(value) for key, value in tensors.items()}
    ids = rng.integers(4, 50, (2, 9)).astype(np.int32)
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids * 0 + 1}
    own = Runtime(StoredModel(config, heads_present(tensors), weights))
    actual = own.run(batch, ("sequence_output",))["sequence_output"]
    np.testing.assert_allclose(actual, of_backbone(backbone, batch), atol=1e-5)


@pytest.mark.parametrize("kind", ["wordpiece", "bytes"])
def test_a_preset_is_loaded_by_keras_nlp_itself(kind, tmp_path, vocabulary):
    import keras_nlp

    models = keras_nlp.models
    size = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24, "max_sequence_length": 20}
    if kind == "wordpiece":
        tokenizer = models.DistilBertTokenizer(vocabulary=list(vocabulary), lowercase=False)
        backbone = models.DistilBertBackbone(vocabulary_size=len(vocabulary), **size)
    else:
        golden = GOLDEN / "roberta"
        merges = [line for line in (golden / "merges.txt").read_text("utf-8").splitlines() if line[:1] != "#"]
        words = json.loads((golden / "vocab.json").read_text("utf-8"))
        tokenizer = models.RobertaTokenizer(vocabulary=words, merges=[line for line in merges if line])
        backbone = models.RobertaBackbone(vocabulary_size=len(words), **size)
    folder = tmp_path / "theirs"
    backbone.save_to_preset(str(folder))
    tokenizer.save_to_preset(str(folder))
    for name in (f"preset:{folder}", folder):
        bert = bert_tf.load(name)
        assert list(bert.tokenizer.tokenize(TEXTS[0]).ids) == list(np.asarray(tokenizer(TEXTS[0])))
        batch = ids_of(bert)
        np.testing.assert_allclose(own_sequence(bert, batch), of_backbone(backbone, batch), atol=1e-5)


@pytest.mark.parametrize("kind", ["gelu", "no pooler", "task"])
def test_a_preset_of_this_project_is_the_same_model_with_and_without_the_word(kind, tmp_path, tiny, request):
    from bert_tf.inference.exported.keras_nlp_task import write_preset

    if kind == "task":
        bert = bert_tf.load(request.getfixturevalue("classifier"))
    else:
        bert = tiny if kind == "gelu" else make_bert(layers=1, seed=4, with_heads=("mlm",))
    assert bert.config.hidden_act == "gelu"  # keras_nlp's BertBackbone computes the tanh approximation
    folder = write_preset(bert, tmp_path / "preset")
    named, plain = bert_tf.load(f"preset:{folder}"), bert_tf.load(folder)
    assert (named.config, named.heads, named.name) == (plain.config, plain.heads, plain.name)
    assert (named.task is not None) == (plain.task is not None) == (kind == "task")
    assert ("pooler" in named.heads) == (kind != "no pooler")
    batch = ids_of(named)
    np.testing.assert_array_equal(own_sequence(named, batch), own_sequence(plain, batch))
    np.testing.assert_allclose(own_sequence(named, batch), own_sequence(bert, batch), atol=1e-5)


@pytest.fixture
def deberta_preset(tmp_path):
    """(folder of a preset of DeBERTa-v3 as keras_nlp saves it, its backbone, its tokenizer)."""
    import keras_nlp

    bert = bert_tf.load(GOLDEN / "deberta")
    backbone = bert.to_keras_nlp()
    tokenizer = keras_nlp.models.DebertaV3Tokenizer(proto=(GOLDEN / "deberta" / "spm.model").read_bytes())
    backbone.save_to_preset(str(tmp_path / "deberta"))
    tokenizer.save_to_preset(str(tmp_path / "deberta"))
    return tmp_path / "deberta", backbone, tokenizer


def check_deberta(bert, backbone, tokenizer):
    assert list(bert.tokenizer.tokenize("a cat").ids) == list(np.asarray(tokenizer("a cat")))
    assert bert.tokenizer.encode("[MASK]", None).token_ids[1] == tokenizer.mask_token_id
    batch = ids_of(bert, "a cat sat")
    np.testing.assert_allclose(own_sequence(bert, batch), of_backbone(backbone, batch), atol=2e-5)


def test_a_preset_of_deberta_is_read_with_its_tokenizer(deberta_preset):
    folder, backbone, tokenizer = deberta_preset
    check_deberta(bert_tf.load(f"preset:{folder}"), backbone, tokenizer)


def test_a_handle_of_the_hugging_face_hub_is_fetched(deberta_preset, hub, monkeypatch, tmp_path):
    from huggingface_hub import constants

    folder, backbone, tokenizer = deberta_preset
    for path in folder.rglob("*"):
        if path.is_file():
            hub.files["someone/deberta", path.relative_to(folder).as_posix()] = path.read_bytes()
    # Both are fixed when the library is imported.
    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    check_deberta(bert_tf.load("preset:hf://someone/deberta"), backbone, tokenizer)
    assert ("GET", "model.weights.h5", None) in hub.requests


def test_a_handle_of_kaggle_is_read_from_what_kagglehub_has_downloaded(deberta_preset, monkeypatch, tmp_path):
    import shutil

    from kagglehub import cache
    from kagglehub.handle import parse_model_handle

    folder, backbone, tokenizer = deberta_preset
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "cache"))
    handle = parse_model_handle("someone/deberta/keras/tiny/1")
    shutil.copytree(folder, cache.get_cached_path(handle))
    for path in folder.rglob("*"):
        cache.Cache().mark_as_complete(handle, path.relative_to(folder).as_posix())
    check_deberta(bert_tf.load("preset:kaggle://someone/deberta/keras/tiny/1"), backbone, tokenizer)


def test_what_keras_nlp_cannot_read_is_told_in_one_sentence(monkeypatch, tmp_path):
    import sys

    with pytest.raises(CheckpointError, match="keras_nlp cannot read the preset .*damaged or incomplete"):
        bert_tf.load(f"preset:{tmp_path}")
    with pytest.raises(CheckpointError, match="keras_nlp cannot read the preset .*give a folder"):
        bert_tf.load("preset:no_such_preset")
    monkeypatch.setitem(sys.modules, "keras_nlp", None)
    with pytest.raises(CheckpointError, match="pip install keras-nlp"):
        bert_tf.load("preset:bert_base_en")


def test_its_masked_lm_predicts_as_ours(tiny):
    model = tiny.to_keras_nlp("masked_lm")
    text = "The cat sat on a [MASK]."
    trace = tiny.trace(text)
    batch = ids_of(tiny, text)
    logits = np.asarray(model({**batch, "mask_positions": np.array([trace.masks], np.int32)}))
    expected = tiny.mlm_logits(batch["token_ids"][0], batch["segment_ids"][0], trace.masks)
    np.testing.assert_allclose(logits[0], expected, atol=1e-4)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A folder of a classifier with a pooler and random weights."""
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    bert = make_bert(layers=1, seed=6)
    settings = TaskSettings("classify", ("no", "yes"))
    network = network_over(bert.model, task_type("classify"), settings)
    randomise(network, 6)
    folder = tmp_path_factory.mktemp("classifier") / "model"
    save_task(folder, bert.config, bert.tokenizer, network, settings)
    return folder


def test_its_text_classifier_predicts_as_ours_and_learns(classifier):
    bert = bert_tf.load(classifier)
    model = bert.to_keras_nlp("text_classifier")
    logits = model.predict(TEXTS, verbose=0)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    ours = [one["probabilities"]["yes"] for one in bert.task.predict(TEXTS)]
    np.testing.assert_allclose((powers / powers.sum(axis=1, keepdims=True))[:, 1], ours, atol=1e-4)
    history = model.fit(TEXTS * 2, [0, 1] * 2, batch_size=4, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("int8", 0.05)])
def test_a_classifier_is_written_as_a_preset_and_read_back(classifier, tmp_path, capsys, dtype, tolerance):
    import keras_nlp

    from bert_tf.cli import main

    target = tmp_path / "preset"
    assert main(["convert", str(classifier), str(target), "--to", "keras-nlp", "--dtype", dtype, "--check"]) == 0
    assert "with its task" in capsys.readouterr().out
    ours = [one["probabilities"]["yes"] for one in bert_tf.load(classifier).task.predict(TEXTS)]
    read = bert_tf.load(target)
    assert read.config.hidden_act == "gelu" and read.task.settings.labels == ("no", "yes")
    np.testing.assert_allclose([one["probabilities"]["yes"] for one in read.task.predict(TEXTS)], ours, atol=tolerance)
    logits = keras_nlp.models.BertTextClassifier.from_preset(str(target)).predict(TEXTS, verbose=0)
    np.testing.assert_allclose(1 / (1 + np.exp(logits[:, 0] - logits[:, 1])), ours, atol=0.05)


def test_a_classifier_saved_by_keras_nlp_itself_is_read_with_its_head(classifier, tmp_path):
    model = bert_tf.load(classifier).to_keras_nlp("text_classifier")
    for layer in model.backbone.transformer_layers:  # what its preset computes
        layer._feedforward_intermediate_dense.activation = keras_gelu
    model.save_to_preset(str(tmp_path / "preset"))
    read = bert_tf.load(tmp_path / "preset")
    assert read.config.hidden_act == "gelu_new" and read.task.settings.labels == ("LABEL_0", "LABEL_1")
    logits = model.predict(TEXTS, verbose=0)
    ours = [one["probabilities"]["LABEL_1"] for one in read.task.predict(TEXTS)]
    np.testing.assert_allclose(1 / (1 + np.exp(logits[:, 0] - logits[:, 1])), ours, atol=1e-4)


def keras_gelu(x):
    import keras

    return keras.activations.gelu(x, approximate=True)


def test_whether_ideographs_are_words_goes_both_ways(tiny, tmp_path):
    import keras
    import keras_nlp

    from bert_tf.checkpoints.formats import kerashub
    from bert_tf.checkpoints.formats.keras_nlp_backbone import own_tokenizer
    from bert_tf.checkpoints.saving import tensor_values
    from bert_tf.inference.exported.keras_nlp_task import _tokenizer

    own = Tokenizer(tiny.tokenizer.vocab, lower_case=False, tokenize_chinese_chars=False)
    theirs = _tokenizer(bert_tf.Bert(tiny.config, own, tiny.weights, tiny.runtime))
    assert not theirs.split_on_cjk and own_tokenizer(theirs).cuts_alike(own)
    assert not keras.layers.deserialize(keras.layers.serialize(theirs)).split_on_cjk
    kerashub.write_preset(tmp_path, tiny.config, own, dict(tensor_values(tiny.model)))
    assert kerashub.open_preset(tmp_path)[1].cuts_alike(own)
    assert not keras_nlp.models.BertTokenizer.from_preset(str(tmp_path)).split_on_cjk


@pytest.mark.parametrize(
    "name, dtype",
    [("bert", "float32"), ("bert", "int8"), ("distilbert", "float32"), ("roberta", "int8"), ("deberta", "float32")],
)
def test_an_mlm_head_is_written_as_a_preset_and_read_back(tiny, tmp_path, name, dtype):
    from bert_tf.inference.exported.formats import compare_loaded
    from bert_tf.inference.exported.keras_nlp_task import write_preset

    bert = tiny if name == "bert" else bert_tf.load(GOLDEN / name)
    read = bert_tf.load(write_preset(bert, tmp_path / "preset", dtype))
    assert "mlm" in read.heads and compare_loaded(bert, read, dtype).passes


def test_a_backbone_in_eight_bits_loads_in_keras_nlp_with_its_dtypes(tmp_path):
    import keras_nlp

    from bert_tf.inference.exported.keras_nlp_task import write_preset

    bert = make_bert(layers=1, seed=4, with_heads=("pooler",))
    folder = write_preset(bert, tmp_path / "preset", "int8")
    dtypes = json.loads((folder / "config.json").read_text("utf-8"))["config"]["dtype"]
    backbone = keras_nlp.models.BertBackbone.from_preset(str(folder), dtype=dtypes)
    actual, wanted = of_backbone(backbone, ids_of(bert)), own_sequence(bert_tf.load(folder), ids_of(bert))
    assert np.abs(actual - wanted).max() < 0.1 and str(np.asarray(backbone.token_embedding._embeddings).dtype) == "int8"


def test_what_a_preset_cannot_hold_is_refused(tiny, tmp_path):
    from bert_tf.inference.exported.keras_nlp_task import write_preset

    bert = bert_tf.load(GOLDEN / "albert")
    bert.tokenizer.save(tmp_path / "pieces")
    (tmp_path / "pieces" / "spiece.model").unlink()
    without = bert_tf.Bert(bert.config, read_tokenizer(tmp_path / "pieces"), bert.weights, bert.runtime)
    with pytest.raises(CheckpointError, match="keras_nlp has no tokenizer with its vocabulary"):
        write_preset(without, tmp_path / "preset")
    with pytest.raises(CheckpointError, match="written as float32 or int8, not float16"):
        write_preset(tiny, tmp_path / "preset", "float16")
    assert not (tmp_path / "preset").exists()


def test_what_a_model_does_not_have_is_refused(tiny):
    with pytest.raises(InputError, match="no task 'tagger'"):
        tiny.to_keras_nlp("tagger")
    with pytest.raises(CheckpointError, match="is no classifier that reads the first token"):
        tiny.to_keras_nlp("text_classifier")
    modern = bert_tf.load(GOLDEN.parent / "modernbert")
    with pytest.raises(CheckpointError, match="keras_nlp has no backbone for a ModernBERT model"):
        modern.to_keras_nlp()


def test_one_segment_is_added_once(make_tiny):
    made = make_tiny(heads=("pooler",), type_vocab_size=1)
    bert = bert_tf.Bert(made.config, made.tokenizer, made.model)
    batch = ids_of(bert)
    np.testing.assert_allclose(of_backbone(bert.to_keras_nlp(), batch), own_sequence(bert, batch), atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "roberta", "type_vocab_size": 2},
        {"model_type": "deberta-v2", "type_vocab_size": 1, "position_buckets": 4, "max_relative_positions": 16},
    ],
)
def test_segments_that_a_backbone_has_no_place_for_are_refused(make_tiny, settings):
    made = make_tiny(heads=("mlm",), **settings)
    with pytest.raises(CheckpointError, match="has no segments, and type_vocab_size is"):
        bert_tf.Bert(made.config, made.tokenizer, made.model).to_keras_nlp()


def test_a_model_without_segments_is_refused_where_a_backbone_always_has_them(make_tiny):
    made = make_tiny(heads=("pooler",), type_vocab_size=0)
    with pytest.raises(CheckpointError, match="always has segments, and this model has none"):
        bert_tf.Bert(made.config, made.tokenizer, made.model).to_keras_nlp()


@pytest.mark.parametrize("name", ["roberta", "albert"])
def test_a_vocabulary_of_another_kind_than_keras_nlps_is_refused(tiny, tmp_path, name):
    from bert_tf.inference.exported.keras_nlp_task import write_preset

    other = bert_tf.load(GOLDEN / name)
    pieces = bert_tf.Bert(tiny.config, other.tokenizer, tiny.weights, tiny.runtime)
    words = bert_tf.Bert(other.config, tiny.tokenizer, other.weights, other.runtime)
    for bert in (pieces, words):
        with pytest.raises(CheckpointError, match="keras_nlp has no tokenizer with its vocabulary"):
            write_preset(bert, tmp_path / "preset")


def documented(heading):
    """The Python examples below a heading of docs/reference/family.md."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "family.md").read_text("utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def test_the_documented_examples_run(tiny, tmp_path):
    from bert_tf.checkpoints import convert, save

    own = save(tmp_path / "own", tiny.config, tiny.tokenizer, tiny.model)
    preset = convert(own, tmp_path / "preset", to="keras-nlp").path
    reading, making = documented("KerasHub, both ways")
    names: dict = {}
    exec(reading.replace("preset:bert_base_en", f"preset:{preset}"), names)
    batch = ids_of(tiny)
    np.testing.assert_allclose(own_sequence(names["bert"], batch), own_sequence(tiny, batch), atol=1e-5)
    assert names["trace"].length > 2
    exec(making.replace("bert-small-uncased-embedded", str(own)), names)
    assert type(names["masked_lm"]).__name__ == "BertMaskedLM"
    updates = [one for one in names["masked_lm"].trainable_weights if one.path.endswith("lora_kernel_b")]
    assert updates and any(np.abs(np.asarray(one)).max() > 0 for one in updates)  # they begin with zeros


@pytest.mark.parametrize("outputs", [("sequence_output", "pooled_output"), ("mlm_logits", "nsp_logits")])
def test_keras_export_of_a_model_gives_its_outputs(tiny, outputs, tmp_path):
    import tensorflow as tf

    from bert_tf.models import view

    model = view(tiny.model, outputs)
    batch = {**ids_of(tiny), **({"mask_positions": np.array([[1, 2]], np.int32)} if "mlm_logits" in outputs else {})}
    expected = model(batch)
    model.export(str(tmp_path / "exported"), verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))  # its variables live as long as it
    actual = exported.serve(batch)
    for name in outputs:
        np.testing.assert_allclose(actual[name], expected[name], atol=1e-5)


def test_keras_export_of_a_view_of_all_layers_names_each(tiny, tmp_path):
    import tensorflow as tf

    from bert_tf.models import view

    model = view(tiny.model, ("attentions", "hidden_states", "sequence_output"))
    batch = ids_of(tiny)
    expected = model(batch)
    model.export(str(tmp_path / "exported"), verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    actual = exported.serve(batch)
    names = {"attentions_0", "attentions_1", "hidden_states_0", "hidden_states_1", "hidden_states_2", "sequence_output"}
    assert set(actual) == names == set(exported.signatures["serving_default"].structured_outputs)
    for name in names:
        output, _, index = name.rpartition("_")
        wanted = expected[output][int(index)] if index.isdigit() else expected[name]
        np.testing.assert_allclose(actual[name], wanted, atol=1e-5)


def test_keras_export_on_another_backend_says_what_to_do(tiny, monkeypatch, tmp_path):
    import keras

    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(ValueError, match="set KERAS_BACKEND=tensorflow, or write ONNX"):
        tiny.model.export(str(tmp_path / "exported"))


@pytest.mark.parametrize("has_mlm", [True, False])
def test_a_preset_of_a_model_without_a_pooler_is_read_without_one(tmp_path, has_mlm):
    import keras_nlp

    from bert_tf.inference.exported.keras_nlp_task import write_preset

    made = make_bert(layers=2, seed=4, with_heads=("mlm",))
    if not has_mlm:
        encoder = build_encoder(made.config, outputs=("sequence_output",))
        made = bert_tf.Bert(made.config, made.tokenizer, encoder, name="encoder")
        assert not made.heads
    folders = [write_preset(made, tmp_path / name) for name in ("one", "other")]
    back = bert_tf.load(folders[0])
    assert back.heads == made.heads and "has no pooler" in (folders[0] / "README.md").read_text()
    np.testing.assert_allclose(own_sequence(back, ids_of(made)), own_sequence(made, ids_of(made)), atol=1e-5)
    theirs = [keras_nlp.models.Backbone.from_preset(str(folder)).pooled_dense.get_weights() for folder in folders]
    assert not any(array.any() for weights in theirs for array in weights)
