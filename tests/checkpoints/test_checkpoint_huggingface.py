"""Folders written by Transformers, as they are and as older versions left them."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from bert_tf.checkpoints import CheckpointError, read

TABLE, DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


@pytest.fixture(scope="module")
def make_theirs(vocabulary):
    """make_theirs(class name) -> a torch model with random weights, biases too."""
    import transformers

    def make(kind, **settings):
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=64,
            attn_implementation="eager",
            **settings,
        )
        model = getattr(transformers, kind)(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return model

    return make


@pytest.fixture
def saved(make_theirs, vocabulary, tmp_path):
    """saved(class name) -> (folder as `save_pretrained` leaves it, the torch model)."""

    def save(kind, **settings):
        model = make_theirs(kind, **settings)
        model.save_pretrained(tmp_path / kind)
        (tmp_path / kind / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        return tmp_path / kind, model

    return save


def rewrite(folder, change, **metadata):
    """Passes the tensors of a folder through `change(dict) -> dict`."""
    path = folder / "model.safetensors"
    save_file(
        {name: np.ascontiguousarray(value) for name, value in change(load_file(path)).items()},
        path,
        metadata={"format": "pt", **metadata},
    )


def check_equal(ours, theirs, within=1e-5):
    shared = ours.keys() & theirs.keys()
    assert shared >= {"sequence_output"}
    for name in shared:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=within, err_msg=name)
    return shared


@pytest.mark.parametrize(
    "kind, heads, outputs",
    [
        ("BertForPreTraining", {"pooler", "mlm", "nsp"}, {"mlm_logits_all", "nsp_logits"}),
        ("BertForMaskedLM", {"mlm"}, {"mlm_logits_all"}),
        ("BertModel", {"pooler"}, {"pooled_output"}),
        ("BertForNextSentencePrediction", {"pooler", "nsp"}, set()),
    ],
)
def test_what_transformers_saves_is_read_with_the_same_outputs(
    saved, outputs_of, transformers_outputs, kind, heads, outputs
):
    folder, theirs = saved(kind)
    _, _, model = read(folder)
    assert model.bert_heads == heads
    assert outputs <= check_equal(
        outputs_of(model),
        {
            name: value
            for name, value in transformers_outputs(theirs).items()
            if not (kind == "BertForNextSentencePrediction" and name == "mlm_logits_all")
        },
    )


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_the_activation_is_the_checkpoints(saved, outputs_of, transformers_outputs, activation):
    folder, theirs = saved("BertForPreTraining", hidden_act=activation)
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs))


def test_names_without_the_prefix_are_read(saved, outputs_of, transformers_outputs):
    folder, theirs = saved("BertModel")
    rewrite(folder, lambda tensors: {name.removeprefix("bert."): value for name, value in tensors.items()})
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs))


def test_names_with_the_prefix_are_read(saved, outputs_of, transformers_outputs):
    folder, theirs = saved("BertModel")
    rewrite(folder, lambda tensors: {f"bert.{name.removeprefix('bert.')}": value for name, value in tensors.items()})
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs))


def test_gamma_and_beta_of_older_files_are_read(saved, outputs_of, transformers_outputs):
    folder, theirs = saved("BertForPreTraining")
    rewrite(
        folder,
        lambda tensors: {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
            for name, value in tensors.items()
        },
    )
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs))


def test_a_decoder_written_out_is_read(saved, outputs_of, transformers_outputs):
    folder, theirs = saved("BertForPreTraining")
    rewrite(
        folder,
        lambda tensors: {
            **tensors,
            DECODER: tensors[TABLE],
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"],
        },
    )
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs))


def test_a_bias_stored_only_with_the_decoder_is_read(saved, outputs_of, transformers_outputs):
    folder, theirs = saved("BertForPreTraining")

    def change(tensors):
        tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")
        return tensors

    rewrite(folder, change)
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs))


def test_a_decoder_that_differs_from_the_table_is_refused(saved):
    folder, _ = saved("BertForPreTraining")
    rewrite(folder, lambda tensors: {**tensors, DECODER: tensors[TABLE] + 1})
    with pytest.raises(CheckpointError, match=f"{DECODER}.*not the same as {TABLE}"):
        read(folder)


def test_position_ids_of_older_files_are_passed_over(saved, outputs_of, transformers_outputs):
    folder, theirs = saved("BertForPreTraining")
    rewrite(folder, lambda tensors: {**tensors, "bert.embeddings.position_ids": np.arange(64)[None]})
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs))


@pytest.mark.parametrize("dtype, within", [("float16", 0.03), ("bfloat16", 0.3), ("float64", 1e-5)])
def test_other_float_types_are_read(saved, outputs_of, transformers_outputs, dtype, within):
    folder, theirs = saved("BertForPreTraining")
    theirs.to(getattr(torch, dtype)).save_pretrained(folder)
    check_equal(outputs_of(read(folder)[2]), transformers_outputs(theirs.float()), within)


def test_shards_of_transformers_are_read(make_theirs, vocabulary, tmp_path, outputs_of, transformers_outputs):
    theirs = make_theirs("BertForPreTraining")
    theirs.save_pretrained(tmp_path, max_shard_size="40KB")
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    check_equal(outputs_of(read(tmp_path)[2]), transformers_outputs(theirs))


def test_a_tokenizer_saved_by_transformers_is_read(saved, vocabulary):
    from transformers import BertTokenizer

    folder, _ = saved("BertForPreTraining")
    BertTokenizer(str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    _, tokenizer, _ = read(folder)
    assert tokenizer.vocab == tuple(vocabulary) and tokenizer.lower_case


def test_a_folder_of_pickles_is_refused(saved):
    folder, _ = saved("BertForPreTraining")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="pickle files .* never read; save the model as safetensors"):
        read(folder)


def test_the_head_of_a_classifier_is_left_to_fine_tuning(saved):
    folder, _ = saved("BertForSequenceClassification")
    assert read(folder)[2].bert_heads == {"pooler"}


@pytest.mark.parametrize(
    "change, message", [({"model_type": "gpt2"}, "gpt2"), ({"position_embedding_type": "relative_key"}, "absolute")]
)
def test_other_families_are_refused(saved, change, message):
    folder, _ = saved("BertModel")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=message):
        read(folder)
