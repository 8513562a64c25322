"""The family `choose`: SWAG's files, scores over choices, learning a made set."""

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.finetuning.data.multiple_choice_examples import (
    ChoiceColumns,
    MultipleChoiceExample,
    choices_of,
    read_choices,
)
from bert_tf.finetuning.tasks.multiple_choice import TASK
from bert_tf.model_outputs import INPUTS
from tests.finetuning.small_datasets import (
    options,
    scored,
    sentences,
    train,
)

SWAG = (
    "\ufeff,video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
    "ending0,ending1,ending2,ending3,label\r\n"
    '0,v1,1,"The cat sat. It","The ""cat"" sat,\r\non a mat.",It,gold,ran.,ate.,is red.,was a dog.,2\r\n'
    "1,v2,2,x,The dog ran.,,gold,a,b,c,d,0\r\n"
)


def money_choices(seed, count):
    """Three sentences of which one speaks of money."""
    rng = np.random.default_rng(seed)
    made = []
    for words in sentences(seed, count):
        choices = [[word for word in one if word != "money"] for one in sentences(rng.integers(1 << 30), 3)]
        label = int(rng.integers(3))
        choices[label].insert(int(rng.integers(len(choices[label]) + 1)), "money")
        made.append(MultipleChoiceExample(" ".join(words), tuple(map(" ".join, choices)), label))
    return made


@pytest.fixture(scope="module")
def chooser(tiny_bert):
    examples = money_choices(0, 64)
    return train(TASK, tiny_bert, examples, TASK.settings(options(), examples), rate=3e-3)


def test_it_learns_a_made_set_and_beats_chance_on_other_questions(chooser):
    assert scored(chooser, money_choices(0, 64))["accuracy"] == 1
    assert scored(chooser, money_choices(1, 40))["accuracy"] > 0.6


def test_errors_name_the_file_without_its_folder(chooser):
    wrong = MultipleChoiceExample("the cat", ("a", "b"), 1, "/home/somebody/swag.csv line 3")
    prediction = {"choice": 0, "text": "a", "probability": 0.9}
    (row,) = TASK.findings([wrong], [prediction], chooser.settings).worst
    assert row["source"] == "swag.csv line 3" and row["true"] == "b"


def test_choices_of_other_lengths_do_not_change_a_score(chooser):
    short, long = "the cat", "the dog ran in park " * 5
    (actual,) = chooser.predict([{"context": "money", "choices": [short, "money is big"]}])
    (beside,) = chooser.predict([{"context": "money", "choices": [short, "money is big", long]}])

    def odds(one):
        return np.log(one["probabilities"][0] / one["probabilities"][1])

    assert odds(actual) == pytest.approx(odds(beside), abs=1e-4)
    assert actual["choice"] == 1 and actual["text"] == "money is big"
    assert sum(beside["probabilities"]) == pytest.approx(1)


def test_questions_of_a_batch_may_have_different_numbers_of_choices(chooser):
    questions = [
        {"context": "money", "choices": ["the cat", "money is big"]},
        {"context": "the dog", "choices": ["ran", "sat on money", "is in the park", "was red"]},
    ]
    for asked in (questions, questions[::-1]):
        for prediction, question in zip(chooser.predict(asked), asked, strict=True):
            (alone,) = chooser.predict([question])
            assert prediction["text"] == alone["text"]
            assert prediction["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-5)


class _Recorder:
    """A runtime that keeps the shapes of its batches."""

    def __init__(self, runtime):
        self._runtime, self.shapes, self.masks = runtime, [], []

    def run(self, arrays, outputs):
        self.shapes.append(arrays["token_ids"].shape)
        self.masks.append(arrays["padding_mask"])
        return self._runtime.run(arrays, outputs)


def test_many_choices_are_read_in_passes_of_bounded_size_without_padding_choices(chooser):
    many = [" ".join(words) for words in sentences(3, 100)]
    questions = [{"context": "money", "choices": choices} for choices in (many, ["the cat", "money is big"])]
    recorder = _Recorder(chooser._runtime)
    actual = chooser.with_runtime(recorder).predict(questions)
    assert sum(rows for rows, _ in recorder.shapes) == 102 and max(rows for rows, _ in recorder.shapes) <= 32
    assert all(mask.any(axis=-1).all() for mask in recorder.masks)
    rows = TASK.encode(
        [TASK.example(one, chooser.settings) for one in questions[:1]], chooser._tokenizer, chooser.settings
    )
    batch = {name: array[0] for name, array in rows.batch([0]).items() if name in INPUTS}
    encoded = chooser._runtime.run(batch, ("sequence_output", "pooled_output"))
    logits = chooser.raw_outputs(encoded["sequence_output"], encoded["pooled_output"], batch["padding_mask"])["logits"]
    powers = np.exp(logits - logits.max())
    np.testing.assert_allclose(actual[0]["probabilities"], powers / powers.sum(), rtol=1e-3, atol=1e-6)
    (alone,) = chooser.predict(questions[1:])
    assert actual[1]["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-5)


def test_swag(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes(SWAG.encode())
    first, second = read_choices(path)
    assert first.context == 'The "cat" sat,\r\non a mat.' and first.label == 2
    assert first.choices == ("It ran.", "It ate.", "It is red.", "It was a dog.")
    assert second.choices == ("a", "b", "c", "d") and second.label == 0


def test_other_columns_and_json_lines(tmp_path):
    (tmp_path / "a.tsv").write_text("q\tx\ty\tright\nWhy?\tno\tyes\t1\n")
    (actual,) = read_choices(tmp_path / "a.tsv", ChoiceColumns("q", None, ("x", "y"), "right"))
    assert (actual.context, actual.choices, actual.label) == ("Why?", ("no", "yes"), 1)
    (tmp_path / "a.jsonl").write_text('{"context": "Why?", "choices": ["no", "yes"], "label": 1}\n')
    (actual,) = read_choices(tmp_path / "a.jsonl")
    assert (actual.context, actual.choices, actual.label) == ("Why?", ("no", "yes"), 1)


@pytest.mark.parametrize(
    "content, message",
    [
        ("sent1,ending0,ending1,label\na,b,c,2\n", r"a\.csv line 2: the label '2' in 'label' is not a number"),
        ("sent1,ending0,ending1,label\na,b,c,0\na,b,c,x\n", "line 3: the label 'x'"),
        ("sent1,ending0,label\na,b,0\n", "line 2: 1 choice; at least 2"),
        ("text,ending0,ending1,label\na,b,c,0\n", r"line 2: there is no column 'sent1' \(found: text, ending0"),
        ("sent1,ending0,ending1,label\n", "holds no question"),
        ("sent1,ending0,ending1,label\n,b,c,0\n", "line 2: the context in 'sent1' is empty"),
        ("sent1,ending0,ending1,label\na,b,,0\n", "line 2: a choice is empty"),
        ("sent1,ending0,ending2,label\na,b,c,0\n", "line 2: the columns of the choices go from 'ending0' to 'ending2'"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        list(read_choices(tmp_path / "a.csv"))


def test_choices_are_in_the_order_of_their_numbers():
    record = {"sent1": "Why?", **{f"ending{number}": str(number) for number in (10, *range(1, 10))}, "label": "9"}
    example = choices_of(record)
    assert example.choices == tuple(map(str, range(1, 11))) and example.label == 9


def test_a_choice_that_is_no_text_and_a_misspelt_column_are_told():
    with pytest.raises(DataError, match="the choice None is not a text"):
        choices_of({"context": "Why?", "choices": ["no", None], "label": 1})
    assert choices_of({"sent1": "", "sent2": 5, "ending0": "no", "ending1": "yes", "label": "1"}).choices == (
        "5 no",
        "5 yes",
    )
    with pytest.raises(DataError, match="'context' is None: give it a text"):
        choices_of({"context": None, "choices": ["no", "yes"]}, labelled=False)
    with pytest.raises(DataError, match="there is no column 'strat'"):
        choices_of({"sent1": "Why?", "ending0": "no", "ending1": "yes", "label": "1"}, ChoiceColumns(start="strat"))
