"""Folders written by Transformers, as they are and as older versions left them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from bert_tf.checkpoints import CheckpointError, convert, read, save
from bert_tf.checkpoints.library import looks_like_model, read_config, stored_heads
from bert_tf.inference.bert import load
from bert_tf.parameters import parameter_counts

GOLDEN = Path(__file__).parents[1] / "golden"
TABLE, DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


@pytest.fixture(scope="module")
def make_theirs(vocabulary):
    """make_theirs(class name) -> a torch model with random weights, biases too."""
    import transformers

    def make(kind, **settings):
        torch.manual_seed(0)
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
        own = {"vocab_size": len(vocabulary), "max_position_embeddings": 64, **shape, **settings}
        config = transformers.BertConfig(attn_implementation="eager", **own)
        model = getattr(transformers, kind)(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return model

    return make


@pytest.fixture
def saved(make_theirs, vocabulary, tmp_path):
    """saved(class name) -> (folder as `save_pretrained` leaves it, the torch model)."""

    def saved(kind, **settings):
        model = make_theirs(kind, **settings)
        model.save_pretrained(tmp_path / kind)
        (tmp_path / kind / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        return tmp_path / kind, model

    return saved


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


def test_an_output_table_and_bias_of_its_own_are_read_as_transformers_reads_them(
    saved, tmp_path, batch, outputs_of, transformers_outputs
):
    import transformers

    from bert_tf.runtime import Runtime

    folder, _ = saved("BertForPreTraining")
    bias = "cls.predictions.decoder.bias"
    rewrite(
        folder,
        lambda tensors: {
            **tensors,
            DECODER: (tensors[TABLE] * 2 + 1).astype(np.float32),
            bias: (tensors["cls.predictions.bias"] + 1).astype(np.float32),
        },
    )
    theirs = transformers.BertForPreTraining.from_pretrained(folder).eval()
    config, tokenizer, model = read(folder)
    assert (
        not config.tie_word_embeddings
        and parameter_counts(config)["total"] < parameter_counts(config, ["mlm"])["total"]
    )
    check_equal(outputs_of(model), transformers_outputs(theirs))
    positions = np.tile(np.arange(3, dtype=np.int32), (len(batch["token_ids"]), 1))
    wanted = transformers_outputs(theirs)["mlm_logits_all"][:, :3]
    for engine in ("openvino", "tensorflow"):
        logits = Runtime(model, engine=engine).run({**batch, "mask_positions": positions}, ("mlm_logits",))[
            "mlm_logits"
        ]
        np.testing.assert_allclose(logits, wanted, atol=1e-5, rtol=0)
    again = read(save(tmp_path / "own", config, tokenizer, model))
    assert not again[0].tie_word_embeddings
    check_equal(outputs_of(again[2]), transformers_outputs(theirs))
    with pytest.raises(CheckpointError, match="output table differs"):
        convert(tmp_path / "own", tmp_path / "google", to="google")


def test_a_table_padded_beyond_the_vocabulary_is_read(
    make_theirs, vocabulary, tmp_path, outputs_of, transformers_outputs
):
    theirs = make_theirs("BertForPreTraining", vocab_size=len(vocabulary) + 6)
    theirs.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    config, tokenizer, model = read(tmp_path)
    assert config.vocab_size == tokenizer.vocab_size == len(vocabulary) + 6 == tokenizer.token_count + 6
    check_equal(outputs_of(model), transformers_outputs(theirs))
    again = read(save(tmp_path / "again", config, tokenizer, model))
    assert again[1].vocab == tokenizer.vocab and again[1].token_count == len(vocabulary)
    assert len((tmp_path / "again" / "vocab.txt").read_text().splitlines()) == len(vocabulary)


@pytest.mark.parametrize("rows, level", [(200, "INFO"), (256, "INFO"), (201, "WARNING"), (328, "WARNING")])
def test_rows_without_a_token_are_told_and_loudly_where_the_vocabulary_may_be_cut(
    make_theirs, vocabulary, tmp_path, caplog, rows, level
):
    assert len(vocabulary) == 194
    make_theirs("BertModel", vocab_size=rows).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    with caplog.at_level("INFO", "bert_tf"):
        read(tmp_path)
    (record,) = caplog.records
    assert record.levelname == level
    assert f"{rows - 194} of the {rows} rows of the token table have no token in the vocabulary" in record.message


def test_added_tokens_with_a_resized_table_are_read(make_theirs, vocabulary, tmp_path):
    from transformers import BertTokenizer

    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    reference = BertTokenizer.from_pretrained(tmp_path)
    reference.add_tokens(["<ent>", "</ent>", "[E9]"])
    theirs = make_theirs("BertForPreTraining")
    theirs.resize_token_embeddings(len(reference))
    theirs.save_pretrained(tmp_path)
    reference.save_pretrained(tmp_path)
    config, tokenizer, _ = read(tmp_path)
    assert config.vocab_size == tokenizer.token_count == len(vocabulary) + 3
    text = "a <ent>b</ent> [E9]"
    assert tokenizer.tokenize(text).ids.tolist() == reference(text, add_special_tokens=False).input_ids


def test_weights_under_another_name_are_read_if_there_is_one_file(saved):
    folder, _ = saved("BertForPreTraining")
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    assert "mlm" in read(folder)[2].bert_heads
    (folder / "other.safetensors").write_bytes((folder / "weights.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match="no weights"):
        read(folder)


def test_the_parent_folder_of_a_sentence_transformers_model_is_read(saved, tmp_path):
    folder, _ = saved("BertModel")
    parent = tmp_path / "sentences"
    shutil.copytree(folder, parent / "0_Transformer")
    modules = [{"idx": 0, "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]
    (parent / "modules.json").write_text(json.dumps(modules))
    assert read(parent)[0] == read(folder)[0]
    assert looks_like_model(parent) and stored_heads(parent, read_config(parent)) == {"pooler"}
    (parent / "modules.json").write_text(json.dumps([{"path": "../../etc"}]))
    with pytest.raises(CheckpointError):
        read(parent)


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


def test_a_bert_with_the_pieces_of_xlm_roberta_packs_pairs_as_they_are_packed_there(make_theirs, tmp_path):
    """As the multilingual models of sentence-transformers: two separators between the texts, and no segments."""
    from transformers import XLMRobertaTokenizer

    pieces = XLMRobertaTokenizer.from_pretrained(GOLDEN / "family" / "xlm-roberta")
    theirs = make_theirs("BertModel", vocab_size=len(pieces))
    theirs.save_pretrained(tmp_path)
    pieces.save_pretrained(tmp_path)
    bert = load(tmp_path)
    for texts in (("the work", "a <mask> license"), ("the work",)):
        wanted = pieces(*texts, return_token_type_ids=True, return_tensors="pt")
        trace = bert.trace(*texts)
        assert trace.token_ids.tolist() == wanted["input_ids"][0].tolist()
        assert trace.segments.tolist() == wanted["token_type_ids"][0].tolist() == [0] * trace.length
        assert trace.tokens.count("</s>") == 2 * len(texts) - 1
        with torch.no_grad():
            states = theirs(**wanted).last_hidden_state[0]
        np.testing.assert_allclose(trace.hidden_states[-1], states, rtol=0, atol=1e-5)


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
