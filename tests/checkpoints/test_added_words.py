"""Words added to a vocabulary: rows from their pieces, kept whole, saved, and read by Transformers as by us."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints.added_words import read_words
from bert_tf.cli import main
from bert_tf.errors import InputError

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDERS = {
    "wordpiece": GOLDEN / "bert_tiny_random",
    "bytes": GOLDEN / "family" / "roberta",
    "pieces": GOLDEN / "family" / "albert",
    "deberta": GOLDEN / "family" / "deberta",  # with a padded table
}
WORDS = ["zyxology", "[E1]"]
TEXT = "Zyxology, zyxology [E1]or zyxologyx"


@pytest.fixture(params=FOLDERS)
def pair(request):
    bert = bert_tf.load(FOLDERS[request.param])
    return bert, bert_tf.resize_vocabulary(bert, WORDS)


def test_words_are_whole_and_other_texts_are_cut_as_before(pair):
    old, new = pair
    ids = [new.tokenizer.token_count - 2, new.tokenizer.token_count - 1]
    assert [new.tokenizer.vocab[row] for row in ids] == WORDS
    actual = new.tokenizer.tokenize(TEXT).ids.tolist()
    assert actual.count(ids[0]) == (2 if new.tokenizer.lower_case else 1) and actual.count(ids[1]) == 1
    for text in ("the license of the work", "a zyxologyx", "E1"):
        assert new.tokenizer.tokenize(text).ids.tolist() == old.tokenizer.tokenize(text).ids.tolist(), text
    assert new.tokenizer.batch_ids([TEXT])[0].tolist() == actual


def test_rows_are_the_means_of_their_pieces(pair):
    old, new = pair
    pieces, row = old.tokenizer.tokenize("zyxology").ids, new.tokenizer.token_count - 2
    assert new.config.vocab_size == max(old.config.vocab_size, old.tokenizer.token_count + 2)
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
        before, after = old.weights.weights[name].float32(), new.weights.weights[name].float32()
        np.testing.assert_allclose(after[row], before[pieces].mean(axis=0), atol=1e-6)
        np.testing.assert_array_equal(after[: old.tokenizer.token_count], before[: old.tokenizer.token_count])
    trace = new.trace(TEXT, mask=[3])
    assert trace.logits.shape[-1] == new.config.vocab_size
    np.testing.assert_allclose(
        new.trace("the license").hidden_states, old.trace("the license").hidden_states, atol=1e-5
    )


def test_what_is_saved_is_read_by_us_and_by_transformers(pair, tmp_path):
    import torch
    import transformers

    _, new = pair
    checkpoints.save(tmp_path, new.config, new.tokenizer, new.model)
    again = bert_tf.load(tmp_path)
    assert again.config == new.config and again.tokenizer.vocab == new.tokenizer.vocab
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for one, other in ((TEXT, "one [E1]"), ("zyxology", None)):
        wanted = reference(one, other).input_ids
        assert again.trace(one, other or "").token_ids.tolist() == wanted
    model = transformers.AutoModel.from_pretrained(tmp_path).eval()
    ids = torch.tensor(again.trace(TEXT).token_ids[None].astype(np.int64))
    with torch.no_grad():
        states = model(ids).last_hidden_state[0].numpy()
    np.testing.assert_allclose(again.trace(TEXT).hidden_states[-1], states, atol=1e-4)


def test_what_cannot_be_added_is_refused():
    bert = bert_tf.load(FOLDERS["bytes"])
    more = bert_tf.resize_vocabulary(bert, ["zyxology"])
    with pytest.raises(InputError, match="no word to add"):
        bert_tf.resize_vocabulary(more, ["zyxology"])
    with pytest.raises(InputError, match="' two' cannot be added"):
        bert_tf.resize_vocabulary(bert, [" two"])
    with pytest.raises(InputError, match="words must be a list of strings; 3 is none"):
        bert_tf.resize_vocabulary(bert, [3])
    with pytest.raises(InputError, match="Give a list of words, such as .'日本'., not one alone"):
        bert_tf.resize_vocabulary(bert, "日本")


def test_a_byte_order_mark_is_no_part_of_a_word(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("zyxology\r\n[E1]\r\n", encoding="utf-8-sig")
    assert read_words([str(words), "more"]) == ["zyxology", "[E1]", "more"]


def test_training_commands_add_words(tmp_path, capsys):
    words, text, examples = tmp_path / "words.txt", tmp_path / "text.txt", tmp_path / "train.tsv"
    words.write_text("zyxology\n\n")
    text.write_text("\n".join(["the zyxology of the work is here and there"] * 40))
    examples.write_text("sentence\tlabel\nzyxology is good\t1\nit is bad\t0\n" * 1)
    source = tmp_path / "tiny"
    shutil.copytree(FOLDERS["wordpiece"], source)
    more = ["--add-tokens", str(words), "[E1]"]
    started = [
        "pretrain",
        "--objective",
        "mlm",
        "--text",
        str(text),
        "--init",
        str(source),
        "--output",
        str(tmp_path / "run"),
        *more,
    ]
    assert main([*started, "--steps", "1", "--batch-size", "2", "--length", "16", "--strategy", "one"]) == 0
    bert = bert_tf.load(tmp_path / "run" / "model")
    assert bert.tokenizer.vocab[-2:] == ("zyxology", "[E1]")
    tuned = ["finetune", "classify", "--model", str(source), "--train", str(examples), "--output"]
    assert main([*tuned, str(tmp_path / "task"), *more, "--epochs", "1", "--length", "16", "--strategy", "one"]) == 0
    task = bert_tf.load(tmp_path / "task")
    assert task.tokenizer.vocab[-2:] == ("zyxology", "[E1]") and task.task.predict(["zyxology is good"])
    assert main([*tuned, str(tmp_path / "delta"), *more, "--delta"]) == 2
    assert "--add-tokens makes larger tables" in capsys.readouterr().err
