"""The fine-tuned models that are shipped: real answers, within their size."""

import pytest

import bert_tf
from bert_tf.checkpoints import embedded_dir

TASKS = ("sentiment-base-cased", "parts-of-speech-base-cased", "entities-base-cased", "questions-small-uncased")
LIGHTHOUSE = (
    "The lighthouse on the northern cape was built in 1862 from grey stone. For forty years Anna Berg, the daughter "
    "of a fisherman, kept the lamp burning. In 1961 the light was replaced by an electric one."
)


@pytest.fixture(scope="module", params=TASKS)
def bert(request):
    return bert_tf.load(request.param)


def test_they_answer_sensibly(bert):
    if bert.task.settings.task == "classify":
        texts = ["A warm, funny film, and one of the finest of the year.", "Two hours of noise without a single idea."]
        assert [one["label"] for one in bert.task.predict(texts)] == ["positive", "negative"]
    elif bert.task.settings.task == "answer":
        asked = {"Who kept the lamp burning?": "Anna Berg", "When was the lighthouse built?": "1862"}
        actual = bert.task.predict([{"question": one, "passage": LIGHTHOUSE} for one in asked])
        assert [one["answer"] for one in actual] == list(asked.values())
        assert [LIGHTHOUSE[one["start"] : one["end"]] for one in actual] == list(asked.values())
    elif "B-person" in bert.task.settings.labels:
        (actual,) = bert.task.predict(["Angela Merkel met Barack Obama in Berlin on a rainy Friday."])
        kinds = {one["text"]: one["type"] for one in actual["entities"]}
        assert kinds == {"Angela Merkel": "person", "Barack Obama": "person", "Berlin": "location"}
    else:
        (actual,) = bert.task.predict(["The old dog slept in Berlin."])
        assert actual["labels"] == ["DET", "ADJ", "NOUN", "VERB", "ADP", "PROPN", "PUNCT"]
        start, end = actual["spans"][5]
        assert actual["text"][start:end] == "Berlin"


def test_their_attention_can_be_looked_at(bert):
    trace = bert.trace("The old dog slept.")
    assert trace.attentions.shape[:2] == (bert.config.num_hidden_layers, 12)


def test_together_they_are_small_and_their_cards_name_data_and_figures():
    folders = [embedded_dir() / name for name in TASKS]
    assert sum(path.stat().st_size for folder in folders for path in folder.iterdir()) < 40_000_000
    for folder in folders:
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert "license: cc-by-sa" in card and "## Data" in card and ("accuracy" in card or "f1" in card)
