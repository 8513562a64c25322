"""The fine-tuned models that are shipped: real answers, within their size."""

import pytest

import bert_tf
from bert_tf.checkpoints import embedded_dir

TASKS = ("sentiment-base-cased", "parts-of-speech-base-cased")


@pytest.fixture(scope="module", params=TASKS)
def bert(request):
    return bert_tf.load(request.param)


def test_they_answer_sensibly(bert):
    if bert.task.settings.task == "classify":
        texts = ["A warm, funny film, and one of the finest of the year.", "Two hours of noise without a single idea."]
        assert [one["label"] for one in bert.task.predict(texts)] == ["positive", "negative"]
    else:
        (found,) = bert.task.predict(["The old dog slept in Berlin."])
        assert found["labels"] == ["DET", "ADJ", "NOUN", "VERB", "ADP", "PROPN", "PUNCT"]
        start, end = found["spans"][5]
        assert found["text"][start:end] == "Berlin"


def test_their_attention_can_be_looked_at(bert):
    trace = bert.trace("The old dog slept.")
    assert trace.attentions.shape[:2] == (12, 12)


def test_together_they_are_small_and_their_cards_name_data_and_figures():
    folders = [embedded_dir() / name for name in TASKS]
    assert sum(path.stat().st_size for folder in folders for path in folder.iterdir()) < 25_000_000
    for folder in folders:
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert "license: cc-by-sa" in card and "## Data" in card and "accuracy" in card
