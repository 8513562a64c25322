"""Fine-tuned models written for other programs."""

import copy
import errno
import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.model_checksums import write_model_checksums
from bert_tf.cli import main
from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning import saved_model
from bert_tf.finetuning.export import export_task
from bert_tf.finetuning.saved_model import _why_no_text, write_saved_model
from bert_tf.finetuning.task_folder import save_task
from bert_tf.finetuning.task_network import build_network, network_over
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from tests.conftest import small_disk

FAMILY = Path(__file__).parents[1] / "golden" / "family"
TEXTS = ["The cat sat on the mat, and she ran.", "big", "a dog " * 20]
SECOND = ["It was small.", "the river bank of Paris, in London and China " * 3, "big"]


@pytest.fixture(scope="module")
def pair_folder(tiny_bert, tmp_path_factory):
    """A pair classifier with random weights that reads 24 tokens."""
    folder = tmp_path_factory.mktemp("pair") / "pair"
    settings = TaskSettings("classify", ("a", "b", "c"), "mean", pair=True, max_length=24)
    network = build_network(tiny_bert.config, task_type("classify"), settings)
    for variable in network.trainable_variables:
        variable.assign(np.random.default_rng(len(variable.shape)).normal(1.0, 0.2, variable.shape))
    save_task(folder, tiny_bert.config, tiny_bert.tokenizer, network, settings)
    return folder


def shares(predictions):
    return [list(one["probabilities"].values()) for one in predictions]


def test_a_saved_model_takes_ids_or_raw_text(trained, tmp_path, capsys):
    import tensorflow as tf

    assert main(["convert", str(trained[0]), str(tmp_path / "served"), "--to", "saved-model", "--check"]) == 0
    bert = bert_tf.load(trained[0])
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    expected = shares(bert.task.predict(TEXTS))
    actual = served["text"](text_a=tf.constant(TEXTS))["probabilities"]
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    rows = bert.task.task_type.encode(
        [bert.task.task_type.example(TEXTS[0], bert.task.settings)], bert.tokenizer, bert.task.settings
    )
    batch = {name: tf.constant(rows.batch([0])[name]) for name in ("token_ids", "segment_ids", "padding_mask")}
    np.testing.assert_allclose(served["serving_default"](**batch)["probabilities"], expected[:1], atol=1e-5)
    messages = capsys.readouterr().out
    assert "ids only" not in messages and "Checked: largest difference" in messages


def test_a_saved_model_that_finds_no_room_is_the_systems_error(pair_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_model, "_why_no_text", lambda _: "ids alone take less time")
    bert = bert_tf.load(pair_folder)
    with small_disk(8000), pytest.raises(OSError) as error:
        write_saved_model(tmp_path / "served", bert)
    assert error.value.errno == errno.EFBIG and error.value.filename == str(tmp_path / "served")


@pytest.mark.parametrize(
    "kind, writes, file",
    [
        ("onnx", "onnx.save", "model.onnx"),
        ("keras", "keras.Model.save", "model.keras"),
        ("keras-nlp", "h5py.Group.__setitem__", ".out.unfinished"),
    ],
)
def test_a_full_disk_is_said_with_the_name_of_the_file(tiny_folder, tmp_path, monkeypatch, capsys, kind, writes, file):
    def fails(*_, **__):
        raise OSError("Can't write data (file write failed: errno = 28, error message = 'No space left on device')")

    monkeypatch.setattr(writes, fails)
    assert main(["convert", str(tiny_folder), str(tmp_path / "out"), "--to", kind]) == 2
    assert capsys.readouterr().err.strip().endswith(f"{file}: No space left on device.")


@pytest.mark.parametrize("member, kind", [("roberta", "ByteLevelTokenizer"), ("albert", "SentencePieceTokenizer")])
def test_a_saved_model_without_raw_text_says_so(member, kind, tmp_path, capsys):
    import tensorflow as tf

    bert = bert_tf.load(FAMILY / member)
    settings = TaskSettings("classify", ("a", "b"), "mean", max_length=24)
    network = network_over(bert.model, task_type("classify"), settings)
    save_task(tmp_path / "task", bert.config, bert.tokenizer, network, settings)
    assert main(["convert", str(tmp_path / "task"), str(tmp_path / "served"), "--to", "savedmodel"]) == 0
    output = capsys.readouterr().out.splitlines()
    assert " · saved-model · " in output[0] and "savedmodel" not in " ".join(output)
    assert output[-1] == f"ids only: tensorflow-text has no tokenizer that cuts text as this model's {kind} does."
    assert list(tf.saved_model.load(str(tmp_path / "served")).signatures) == ["serving_default"]


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"strips_accents": True, "lower_case": False}, "capital letters and accents only together"),
        ({"tokenize_chinese_chars": False}, "always splits Chinese characters"),
    ],
)
def test_why_a_word_piece_model_has_no_raw_text_is_said(tiny_bert, changes, why):
    own = copy.copy(tiny_bert.tokenizer)
    assert _why_no_text(own) is None
    for name, value in changes.items():
        setattr(own, name, value)
    assert why in _why_no_text(own)


def test_raw_pairs_are_cut_as_the_tokenizer_cuts_them(pair_folder, tmp_path):
    import tensorflow as tf

    export_task(pair_folder, tmp_path / "served", "savedmodel")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["text"]
    actual = served(text_a=tf.constant(TEXTS), text_b=tf.constant(SECOND))["probabilities"]
    task = bert_tf.load(pair_folder).task
    np.testing.assert_allclose(actual, shares(task.predict(list(zip(TEXTS, SECOND)))), atol=1e-5)


def test_a_classifier_of_others_reads_texts_and_pairs(tiny_bert, tmp_path):
    """Its config.json does not say which; it is measured, asked and served with both."""
    import tensorflow as tf

    settings = TaskSettings("classify", ("a", "b"), pair=True)
    network = network_over(tiny_bert.model, task_type("classify"), settings)
    kernel = network.head.classifier.kernel
    kernel.assign(np.random.default_rng(0).normal(0.0, 0.3, kernel.shape))
    save_task(tmp_path / "theirs", tiny_bert.config, tiny_bert.tokenizer, network, settings)
    (tmp_path / "theirs" / "task.json").unlink()
    write_model_checksums(tmp_path / "theirs")
    bert = bert_tf.load(tmp_path / "theirs")
    bert.task.settings = bert.task.settings.replace(max_length=24)
    assert bert.task.settings.pair is None
    texts, seconds = [*TEXTS, *TEXTS], [*SECOND, "", "", ""]
    expected = bert.task.predict([{"text_a": a, "text_b": b} for a, b in zip(texts, seconds)])
    np.testing.assert_allclose(shares(expected[3:]), shares(bert.task.predict(TEXTS)), atol=1e-6)
    assert np.abs(np.subtract(shares(expected[:3]), shares(expected[3:]))).max() > 1e-4
    write_saved_model(tmp_path / "served", bert)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["text"]
    actual = served(text_a=tf.constant(texts), text_b=tf.constant(seconds))["probabilities"]
    np.testing.assert_allclose(actual, shares(expected), atol=1e-5)

    for name, header in (("single", "text,label"), ("pair", "text,text2,label")):
        row = "the cat,a" if name == "single" else "the cat,big,a"
        data = tmp_path / f"{name}.csv"
        data.write_text(f"{header}\n{row}\n")
        assert main(["evaluate", "classify", "--model", str(bert.path), "--data", str(data), "--quiet"]) == 0
    with pytest.raises(DataError, match="two texts, and text_b is 3, which is no text"):
        bert.task.predict([{"text_a": "the cat", "text_b": 3}])


@pytest.fixture
def served(tiny_bert, tmp_path):
    """A function: (the model of a task with random weights, its SavedModel's signature for raw text)."""

    def make(task, **settings):
        import tensorflow as tf

        settings = TaskSettings(task, **settings)
        network = build_network(tiny_bert.config, task_type(task), settings)
        for variable in network.trainable_variables:
            variable.assign(np.random.default_rng(len(variable.shape)).normal(0.0, 0.3, variable.shape))
        save_task(tmp_path / task, tiny_bert.config, tiny_bert.tokenizer, network, settings)
        export_task(tmp_path / task, tmp_path / "served", "savedmodel")
        return bert_tf.load(tmp_path / task), tf.saved_model.load(str(tmp_path / "served")).signatures["text"]

    return make


@pytest.mark.parametrize("crf", [False, True])
def test_tags_come_with_their_places_in_the_raw_text(served, crf):
    bert, text = served("tag", labels=("N", "V", "X"), max_length=32, extra={"crf": crf})
    texts = ["The cat sat, and she ran.", "", "Paris – “the bank”"]
    actual = {name: array.numpy() for name, array in text(text_a=np.array(texts)).items()}
    for row, written in enumerate(texts):
        tokens = bert.tokenizer.tokenize(written)
        raw = written.encode()
        pieces = [
            raw[start:end].decode() for start, end in zip(actual["starts"][row], actual["ends"][row]) if start >= 0
        ]
        assert pieces == [written[start:end] for start, end in tokens.offsets]
        inside = actual["starts"][row] >= 0
        inputs = {name: array[None] for name, array in vars_of(bert.tokenizer.encode(written)).items()}
        outputs = bert.task.network(inputs, training=False)
        length = inputs["token_ids"].shape[1]
        np.testing.assert_allclose(actual["logits"][row, :length], outputs["logits"][0], atol=1e-5)
        assert inside.sum() == len(tokens.ids) and not inside[[0, -1]].any()
        if not crf:
            labels = [bert.task.settings.labels[best].encode() for best in actual["logits"][row].argmax(-1)]
            assert list(actual["labels"][row]) == labels


def vars_of(encoding):
    ids = np.asarray(encoding.token_ids, np.int32)
    return {
        "token_ids": ids,
        "segment_ids": np.asarray(encoding.segment_ids, np.int32),
        "padding_mask": np.ones_like(ids),
    }


@pytest.mark.parametrize("no_answer", [False, True])
def test_the_answer_is_a_part_of_the_raw_passage(served, no_answer):
    bert, text = served(
        "answer", max_length=64, pair=True, extra={"answer_length": 3, "no_answer": no_answer, "question_length": 8}
    )
    questions = ["Who sat on the mat?", "Where is it, and what was it that she ran for?", "who?"]
    passages = ["The big cat sat – on “the mat” in Paris.", "London and China and the river bank.", "she"]
    actual = {
        name: array.numpy() for name, array in text(text_a=np.array(questions), text_b=np.array(passages)).items()
    }
    expected = bert.task.predict(
        [{"question": question, "passage": passage} for question, passage in zip(questions, passages)]
    )
    assert [answer.decode() for answer in actual["answer"]] == [one["answer"] for one in expected]
    for row, one in enumerate(expected):
        if one["answer"]:
            assert actual["score"][row] == pytest.approx(one["best"]["score"], abs=1e-4)
            before = passages[row].encode()[: actual["answer_start"][row]].decode()
            assert len(before) == one["start"]


def test_choices_of_raw_text(served):
    bert, text = served("choose", max_length=24, extra={"choices": 2})
    choices = [["The dog ran.", "It was small and big and small, and it ran on the river bank of Paris."], ["big", "a"]]
    actual = text(text_a=np.array(TEXTS[:2]), text_b=np.array(choices))["probabilities"].numpy()
    expected = bert.task.predict([{"context": a, "choices": b} for a, b in zip(TEXTS, choices)])
    np.testing.assert_allclose(actual, [one["probabilities"] for one in expected], atol=1e-5)


def test_each_of_several_labels_has_a_probability_of_its_own(served):
    bert, text = served("classify", labels=("a", "b", "c"), multi_label=True, max_length=24)
    actual = {name: array.numpy() for name, array in text(text_a=np.array(TEXTS)).items()}
    assert set(actual) == {"logits", "probabilities"}
    np.testing.assert_allclose(actual["probabilities"], 1 / (1 + np.exp(-actual["logits"].astype(float))), atol=1e-6)
    np.testing.assert_allclose(actual["probabilities"], shares(bert.task.predict(TEXTS)), atol=1e-5)
    assert np.abs(actual["probabilities"].sum(axis=1) - 1).min() > 0.01


def test_a_number_is_served_as_its_logit_alone(served):
    bert, text = served("classify", regression=True, pooling="mean", max_length=24)
    actual = {name: array.numpy() for name, array in text(text_a=np.array(TEXTS)).items()}
    assert set(actual) == {"logits"} and actual["logits"].shape == (3, 1)
    values = [one["value"] for one in bert.task.predict(TEXTS)]
    np.testing.assert_allclose(actual["logits"][:, 0], values, atol=1e-5)
    assert np.ptp(values) > 1e-3


def test_a_folder_is_written_again_and_refused_where_something_lies(pair_folder, tmp_path):
    export_task(pair_folder, tmp_path / "copy", "own", "float16")
    first, second = (
        bert_tf.load(folder).task.predict(list(zip(TEXTS, SECOND))) for folder in (pair_folder, tmp_path / "copy")
    )
    np.testing.assert_allclose(shares(first), shares(second), atol=5e-3)
    with pytest.raises(TaskError, match="is there already and not empty"):
        export_task(pair_folder, tmp_path / "copy")
    with pytest.raises(TaskError, match="written here as own, hf, saved-model, not 'google'; .* convert. also"):
        export_task(pair_folder, tmp_path / "other", "google")
    with pytest.raises(TaskError, match=r"not 'keras-nlp'; `python -m bert_tf convert`"):
        export_task(pair_folder, tmp_path / "other", "keras-nlp")
    with pytest.raises(
        TaskError, match="Transformers has no class with this head .'classify', pooling 'mean', on a BERT"
    ):
        export_task(pair_folder, tmp_path / "other", "hf")
    assert not (tmp_path / "other").exists()
    shutil.rmtree(tmp_path / "copy")
