"""The models in the repository that were pre-trained here: what a person sees first must be good."""

import json
import re

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import embedded_dir
from bert_tf.checkpoints.reading import open_folder
from bert_tf.inference.predictions import fill_mask

BASE, SMALL = "bert-base-cased-embedded", "bert-small-uncased-embedded"


@pytest.fixture(scope="module", params=[BASE, SMALL])
def bert(request):
    return bert_tf.load(request.param)


@pytest.fixture(scope="module")
def base():
    return bert_tf.load()


def top(bert, text, k=5):
    (answer,) = fill_mask(bert.trace(text), bert.tokenizer, top_k=k)
    return [guess.token for guess in answer.predictions]


def test_base_is_the_default(base):
    assert base.name == BASE and base.config.size_name == "base" and not base.tokenizer.lower_case


def test_both_have_both_heads(bert):
    assert bert.heads == {"pooler", "mlm", "nsp"}


@pytest.mark.parametrize("name, megabytes", [(BASE, 115), (SMALL, 25)])
def test_size_in_the_repository(name, megabytes):
    files = list((embedded_dir() / name).glob("*.safetensors"))
    assert files and sum(path.stat().st_size for path in files) <= megabytes * 1e6
    assert all(path.stat().st_size < 60e6 for path in files)


@pytest.mark.parametrize("name", [BASE, SMALL])
def test_the_card_tells_origin_licences_and_figures(name):
    card = (embedded_dir() / name / "README.md").read_text()
    for words in ("Apache-2.0", "CC BY-SA 3.0", "updates", "tokens", "hours", "WikiText-2", "Limits"):
        assert words in card
    assert "{" not in card, "a figure was not filled in"


@pytest.mark.parametrize("name", [BASE, SMALL])
def test_the_card_has_the_fields_of_the_hub_and_figures_of_other_texts(name):
    _, front, body = (embedded_dir() / name / "README.md").read_text().split("---\n", 2)
    for field in ("license", "library_name", "pipeline_tag", "base_model", "datasets", "metrics", "model-index"):
        assert f"\n{field}:" in f"\n{front}"
    assert "BLiMP" in body and "A hundred everyday sentences" in body
    assert ("CoNLL-2003" in body) == (name == BASE)


@pytest.mark.parametrize("name", [BASE, SMALL])
def test_each_of_the_512_position_vectors_is_like_the_next(name):
    # Vectors that were lost to rounding, or never trained, have cosines around 0.
    _, _, tensors = open_folder(embedded_dir() / name)
    table = tensors["bert.embeddings.position_embeddings.weight"].read().astype("float32")
    rows = table[1:] - table[1:].mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert len(table) == 512 and np.sum(rows[1:] * rows[:-1], axis=1).min() > 0.1


@pytest.mark.parametrize("name", [BASE, SMALL])
def test_the_card_has_figures_by_length_and_kind_of_text(name):
    card = (embedded_dir() / name / "README.md").read_text()
    for words in ("| tokens of a sequence | 128 | 256 | 512 |", "news: Wikinews", "everyday: "):
        assert words in card


def test_the_licence_that_asks_for_its_text_in_every_copy_has_it():
    card = (embedded_dir() / BASE / "README.md").read_text()
    path = re.search(r"\[NOTICE\]\((.+?)\)", card)[1]
    notice = (embedded_dir() / BASE / path).read_text()
    for words in (
        "dslim/bert-base-NER",
        "Copyright (c) David S. Lim",
        "The above copyright notice and this permission",
        'THE SOFTWARE IS PROVIDED "AS IS"',
    ):
        assert words in notice
    made_from_it = {file.parent.name for file in embedded_dir().glob("*/*.json") if BASE in file.read_text("utf-8")}
    assert {"electra-base-cased-embedded", "entities-base-cased"} <= made_from_it
    assert not [name for name in made_from_it if name not in notice]


@pytest.mark.parametrize(
    "text, word",
    [
        ("Shanghai is a city in [MASK].", "China"),
        ("The capital of France is [MASK].", "Paris"),
        ("The Second World [MASK] ended in 1945.", "War"),
        ("She put the book [MASK] the table.", "on"),
        ("They [MASK] going home now.", "were"),
    ],
)
def test_base_knows(base, text, word):
    assert word in top(base, text)


def test_what_follows_is_told_from_what_does_not(base):
    first = "The legislators believed they were on the right side of history."
    after = base.trace(first, "So they changed the law.").nsp.is_next
    other = base.trace(first, "The bunny ate the carrot.").nsp.is_next
    assert after > other


def test_neither_guesses_the_same_for_everything(bert):
    assert top(bert, "The dog ate the [MASK].", 1) != top(bert, "He was born in [MASK].", 1)


def test_config_says_what_the_files_hold():
    for name in (BASE, SMALL):
        config = json.loads((embedded_dir() / name / "config.json").read_text())
        assert config["architectures"] == ["BertForPreTraining"]


def test_the_student_has_half_its_teacher_s_layers_and_much_of_what_it_knows(base):
    student = bert_tf.load("bert-base-cased-student")
    assert student.config == base.config.replace(num_hidden_layers=6) and student.heads == base.heads
    folder = embedded_dir() / student.name
    assert sum(path.stat().st_size for path in folder.iterdir()) < 40e6
    assert "{" not in (folder / "README.md").read_text(), "a figure was not filled in"
    for text, word in (("The Second World [MASK] ended in 1945.", "War"), ("She put the book [MASK] the table.", "on")):
        assert word in top(student, text)
    follows, strange = (
        student.trace("The legislators believed they were on the right side of history.", second).nsp.is_next
        for second in ("So they changed the law.", "The bunny ate the carrot.")
    )
    assert follows > strange


def test_the_discriminator_is_small_and_its_card_tells_all(tmp_path):
    folder = embedded_dir() / "electra-base-cased-embedded"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 32e6
    card = (folder / "README.md").read_text()
    for words in ("Apache-2.0", "CC BY-SA 3.0", "updates", "tokens", "hours", "WikiText-2", "Limits"):
        assert words in card
    assert "{" not in card, "a figure was not filled in"


def test_the_discriminator_lies_over_base_and_reads_with_its_lower_layers():
    import numpy as np

    from bert_tf.models import named_variables

    judge, base = bert_tf.load("electra-base-cased-embedded"), bert_tf.load(BASE)
    assert judge.heads == {"replaced"} and judge.config.architecture.title == "ELECTRA"
    assert judge.tokenizer.vocab == base.tokenizer.vocab
    ours, theirs = named_variables(judge.model), named_variables(base.model)
    same = {name for name in ours if name in theirs and np.array_equal(ours[name], theirs[name])}
    assert same == {
        name
        for name in ours
        if name.startswith(("bert.embeddings.", *(f"bert.encoder.layer.{index}." for index in range(8))))
    }


@pytest.mark.parametrize(
    "text, word, other",
    [
        ("She put the book on the table.", "on", "war"),
        ("The river flows into the sea.", "river", "seven"),
        ("He was born in London in 1956.", "born", "green"),
        ("The dog ran across the street.", "ran", "of"),
    ],
)
def test_the_discriminator_suspects_what_does_not_fit(text, word, other):
    judge = bert_tf.load("electra-base-cased-embedded")
    place = text.split().index(word) + 1
    right, wrong = (judge.trace(one).replaced[place] for one in (text, text.replace(f" {word} ", f" {other} ")))
    assert wrong > right and wrong > 0.3


def test_the_partners_of_patching_have_as_many_tokens_and_make_the_hidden_word_less_likely(base):
    from bert_tf.inference.words import Word
    from ui.samples.examples import EXAMPLES
    from ui.samples.patching_pairs import aligned, corrupted_text

    for example in EXAMPLES:
        inputs = [(example.a, example.b or None)]
        inputs.append(tuple(text and corrupted_text(text) for text in inputs[0]))
        encodings = [base.tokenizer.encode(*texts) for texts in inputs]
        assert inputs[0] != inputs[1] and aligned(*encodings), example.label
        masked = [Word(spot.source, spot.word) for spot in example.masks]
        likely = [
            fill_mask(base.trace(*texts, mask=masked), base.tokenizer, 1)[0].original_probability for texts in inputs
        ]
        assert likely[1] < likely[0] / 2.5, (example.label, likely)
