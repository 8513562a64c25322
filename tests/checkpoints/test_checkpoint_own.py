"""Folders of our own: saved, sharded, in fewer bits, and read back."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_tf.checkpoints import CheckpointError, MissingHead, read, require_head, save
from bert_tf.checkpoints.quantize import dequantize_rows, quantize_rows


def equal(left, right, within=0.0):
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=0, atol=within, err_msg=name)


def test_what_was_saved_is_read_back_bit_for_bit(tiny, tiny_folder, outputs_of):
    config, tokenizer, model = read(tiny_folder)
    assert config == tiny.config and tokenizer.vocab == tiny.tokenizer.vocab and not tokenizer.lower_case
    assert model.bert_heads == {"pooler", "mlm", "nsp"}
    equal(outputs_of(model), outputs_of(tiny.model))


def test_the_folder_has_the_files_of_a_hugging_face_model_and_a_card(tiny_folder):
    names = {path.name for path in tiny_folder.iterdir()}
    assert names == {
        "config.json",
        "vocab.txt",
        "tokenizer_config.json",
        "model.safetensors",
        "README.md",
        "checksums.json",
    }


def test_transformers_reads_it_with_the_same_outputs(tiny, tiny_folder, outputs_of, transformers_outputs):
    from transformers import BertForPreTraining, BertTokenizer

    theirs = BertForPreTraining.from_pretrained(tiny_folder, attn_implementation="eager").eval()
    expected, ours = transformers_outputs(theirs), outputs_of(tiny.model)
    equal({name: ours[name] for name in expected}, expected, within=1e-5)
    assert BertTokenizer.from_pretrained(tiny_folder).tokenize("The dog ran.") == list(
        tiny.tokenizer.tokenize("The dog ran.").tokens
    )


@pytest.mark.parametrize("heads", [(), ("pooler",), ("mlm",), ("pooler", "nsp"), ("pooler", "mlm")])
def test_a_model_with_fewer_heads_keeps_just_those(make_tiny, outputs_of, tmp_path, heads):
    made = make_tiny(heads=heads)
    _, _, model = read(save(tmp_path / "m", made.config, made.tokenizer, made.model))
    assert model.bert_heads == set(heads)
    equal(outputs_of(model), outputs_of(made.model))


def test_a_missing_head_is_named(headless_folder):
    _, _, model = read(headless_folder)
    require_head(model.bert_heads, "pooler")
    with pytest.raises(MissingHead, match="'?small'? has no masked language model head.*predict masked words"):
        require_head(model.bert_heads, "mlm", "small")
    with pytest.raises(MissingHead, match="next-sentence head") as caught:
        require_head(model.bert_heads, "nsp")
    assert caught.value.head == "nsp" and isinstance(caught.value, ValueError)
    assert str(caught.value).endswith("one, or train one with `python -m bert_tf pretrain`.")
    assert caught.value.sentence.endswith("; choose a model that has one.")


def test_half_precision_halves_the_file_and_moves_outputs_little(tiny, tiny_folder, tmp_path, outputs_of):
    folder = save(tmp_path / "half", tiny.config, tiny.tokenizer, tiny.model, dtype="float16")
    size = (folder / "model.safetensors").stat().st_size
    assert size < 0.6 * (tiny_folder / "model.safetensors").stat().st_size
    _, _, model = read(folder)
    equal(outputs_of(model), outputs_of(tiny.model), within=0.02)


def test_eight_bits_are_off_by_half_a_step_at_most(tiny, tmp_path):
    from bert_tf.models import named_variables
    from bert_tf.parameters import is_transposed

    folder = save(tmp_path / "eight", tiny.config, tiny.tokenizer, tiny.model, dtype="int8")
    stored = load_file(folder / "model.safetensors")
    _, _, model = read(folder)
    originals = named_variables(tiny.model)
    for name, variable in named_variables(model).items():
        value, original = np.asarray(variable), np.asarray(originals[name])
        if value.ndim == 1:
            assert stored[name].dtype == np.float32
            np.testing.assert_array_equal(value, original)
            continue
        assert stored[name].dtype == np.int8 and stored[f"{name}.scale"].shape == stored[name].shape[:1]
        off = np.abs(value - original)
        steps = stored[f"{name}.scale"]
        assert (off <= 0.501 * (steps[None, :] if is_transposed(name) else steps[:, None])).all(), name


def test_eight_bits_take_little_more_than_a_quarter(make_tiny, tmp_path):
    made = make_tiny()
    sizes = {}
    for dtype in ("float32", "int8"):
        folder = save(tmp_path / dtype, made.config, made.tokenizer, made.model, dtype)
        sizes[dtype] = sum(value.nbytes for value in load_file(folder / "model.safetensors").values())
    assert sizes["int8"] < 0.35 * sizes["float32"]  # rows of 32 here; 0.26 at the width of Base


def test_rows_of_zeros_and_single_large_values_survive_quantising():
    matrix = np.array([[0, 0, 0], [1e-30, -1e-30, 0], [100, 0.2, -0.6]], np.float32)
    integers, scales = quantize_rows(matrix)
    back = dequantize_rows(integers, scales)
    assert (back[0] == 0).all() and back[2, 0] == pytest.approx(100)
    assert (np.abs(back - matrix) <= 0.501 * scales[:, None]).all()


def test_values_that_are_not_finite_are_not_saved(make_tiny, tmp_path):
    made = make_tiny()
    made.model.bert_layers["pooler"].dense.bias.assign(np.full(32, np.nan, np.float32))
    with pytest.raises(CheckpointError, match="bert.pooler.dense.bias.*not finite"):
        save(tmp_path / "nan", made.config, made.tokenizer, made.model)


def test_values_too_large_for_half_precision_are_not_saved(make_tiny, tmp_path):
    made = make_tiny()
    made.model.bert_layers["pooler"].dense.bias.assign(np.full(32, 1e5, np.float32))
    with pytest.raises(CheckpointError, match="too large for float16"):
        save(tmp_path / "big", made.config, made.tokenizer, made.model, dtype="float16")


def test_an_unknown_storage_type_is_refused(tiny, tmp_path):
    with pytest.raises(CheckpointError, match="'int4'; choose from float32, float16, int8"):
        save(tmp_path / "x", tiny.config, tiny.tokenizer, tiny.model, dtype="int4")


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_shards_stay_under_the_limit_and_are_read_as_one(tiny, tmp_path, outputs_of, dtype):
    limit = 30_000
    folder = save(tmp_path / "s", tiny.config, tiny.tokenizer, tiny.model, dtype, max_shard_bytes=limit)
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1 and not (folder / "model.safetensors").exists()
    assert all(sum(value.nbytes for value in load_file(path).values()) <= limit for path in shards)
    assert shards[0].name == f"model-00001-of-{len(shards):05d}.safetensors"
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == {path.name for path in shards}
    assert index["metadata"]["total_size"] == sum(value.nbytes for path in shards for value in load_file(path).values())
    single_file = save(tmp_path / "w", tiny.config, tiny.tokenizer, tiny.model, dtype)
    equal(outputs_of(read(folder)[2]), outputs_of(read(single_file)[2]))


def test_transformers_reads_our_shards(tiny, tmp_path, outputs_of, transformers_outputs):
    from transformers import BertForPreTraining

    folder = save(tmp_path / "s", tiny.config, tiny.tokenizer, tiny.model, max_shard_bytes=30_000)
    theirs = BertForPreTraining.from_pretrained(folder, attn_implementation="eager").eval()
    expected, ours = transformers_outputs(theirs), outputs_of(tiny.model)
    equal({name: ours[name] for name in expected}, expected, within=1e-5)


def test_saving_again_leaves_no_weights_of_the_earlier_save(tiny, tmp_path):
    folder = save(tmp_path / "m", tiny.config, tiny.tokenizer, tiny.model, max_shard_bytes=30_000)
    (folder / "notes.txt").write_text("kept")
    save(folder, tiny.config, tiny.tokenizer, tiny.model)
    assert [path.name for path in folder.glob("model*")] == ["model.safetensors"]
    assert (folder / "notes.txt").read_text() == "kept"
    save(folder, tiny.config, tiny.tokenizer, tiny.model, max_shard_bytes=30_000)
    assert not (folder / "model.safetensors").exists()
    read(folder)


def test_the_card_is_written_as_given(tiny, tmp_path):
    folder = save(tmp_path / "m", tiny.config, tiny.tokenizer, tiny.model, card="# Mine\n")
    assert (folder / "README.md").read_text() == "# Mine\n"


@pytest.mark.parametrize("dtype, variables", [("bfloat16", "bfloat16"), ("mixed_bfloat16", "float32")])
def test_a_model_can_be_read_in_reduced_precision(tiny_folder, dtype, variables):
    from bert_tf.models import named_variables

    _, _, model = read(tiny_folder, dtype=dtype)
    table = named_variables(model)["bert.embeddings.word_embeddings.weight"]
    assert str(table.dtype) == variables and np.asarray(table).astype(np.float32).any()


def test_a_tokenizer_of_another_model_is_not_saved(tiny, tmp_path):
    with pytest.raises(CheckpointError, match="do not belong together"):
        save(tmp_path / "m", tiny.config.replace(vocab_size=7), tiny.tokenizer, tiny.model)


def test_a_refused_folder_costs_no_tensorflow(tmp_path):
    code = (
        "import sys, bert_tf.checkpoints as c\n"
        f"try: c.read({str(tmp_path)!r})\n"
        "except c.CheckpointError as error: print('tensorflow' in sys.modules, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("False") and "config.json" in done.stdout, done.stdout + done.stderr
