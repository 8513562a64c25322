"""One hidden word asked of readers that see different sides."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import InputError, MissingHead
from bert_tf.explain import directionality, predict_span
from bert_tf.inference.bert import Bert
from bert_tf.inference.predictions import fill_mask
from bert_tf.tokenizers import Tokenizer
from tests.layers.test_causal import APART, LEFT, make_reader

TEXT = "The cat sat on the mat in Paris."
START, END = TEXT.index("mat"), TEXT.index("mat") + 3


@pytest.fixture(scope="module")
def readers(tiny_bert):
    return {"left_to_right": make_reader(LEFT), "two_one_way": make_reader(APART), "bidirectional": tiny_bert}


@pytest.mark.parametrize("way", ["left_to_right", "two_one_way", "bidirectional"])
def test_it_is_the_model_s_answer_at_one_mask_compared_with_the_word(readers, way):
    bert = readers[way]
    reading = predict_span(bert, TEXT, START, END, top_k=bert.tokenizer.vocab_size)
    trace = bert.trace("The cat sat on the [MASK] in Paris.")
    (wanted,) = fill_mask(trace, bert.tokenizer, bert.tokenizer.vocab_size)
    actual, expected = ({one.id: one.probability for one in answer.predictions} for answer in (reading.answer, wanted))
    assert actual == pytest.approx(expected, rel=1e-4) and reading.attention_direction == way
    ranked = [one.token for one in reading.answer.predictions]
    assert ranked.index("mat") == reading.answer.original_rank - 1
    assert reading.answer.original_probability == pytest.approx(
        reading.answer.predictions[reading.answer.original_rank - 1].probability
    )


@pytest.mark.parametrize(
    "way, visible_spans",
    [
        ("left_to_right", [(0, START, "left")]),
        ("two_one_way", [(0, START, "left"), (END, len(TEXT), "right")]),
        ("bidirectional", [(0, START, "both"), (END, len(TEXT), "both")]),
    ],
)
def test_what_it_says_it_has_seen_is_what_changes_its_answer(readers, way, visible_spans):
    bert = readers[way]
    assert list(predict_span(bert, TEXT, START, END).visible_spans) == visible_spans

    def likely(text):
        start = text.index("mat")
        return [one.probability for one in predict_span(bert, text, start, start + 3, 20).answer.predictions]

    before = likely(TEXT)
    assert not np.allclose(likely(TEXT.replace("cat", "dog")), before, rtol=1e-4)
    assert np.allclose(likely(TEXT.replace("Paris", "London")), before, rtol=1e-6) == (way == "left_to_right")


def test_a_word_of_several_tokens_is_not_compared_and_a_typed_mask_neither(readers):
    text = "The cats sat on [MASK]."
    assert predict_span(readers["left_to_right"], text, 4, 8).answer.original is None
    start = text.index("[MASK]")
    reading = predict_span(readers["bidirectional"], text, start, start + 6)
    assert reading.answer.original is None and reading.answer.original_probability is None


@pytest.mark.parametrize("text, word, piece", [("the a work", "a", " a"), ("a the work", "a", "a")])
def test_a_byte_level_piece_has_the_space_before_its_word(text, word, piece):
    bert = bert_tf.load(Path(__file__).parents[2] / "golden" / "family" / "roberta")
    start = text.index(word)
    answer = predict_span(bert, text, start, start + 1).answer
    trace = bert.trace(f"{text[:start]}<mask>{text[start + 1 :]}")
    logits = trace.logits[0].astype(np.float64)
    index = bert.tokenizer.vocab.index(piece)
    assert answer.original == piece and answer.original_rank == 1 + (logits > logits[index]).sum()
    assert answer.original_probability == pytest.approx(np.exp(logits[index]) / np.exp(logits).sum(), rel=1e-5)


@pytest.mark.parametrize("mask", ["<mask>", "<|mask|>", "[M]"])
def test_the_mask_token_may_have_any_name(readers, mask):
    bert = readers["bidirectional"]
    tokens = [mask if token == "[MASK]" else token for token in bert.tokenizer.vocab]
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", mask)
    renamed = Bert(bert.config, Tokenizer(tokens, special_tokens=special), bert.model, name="renamed")
    for text, start, end in ((TEXT, START, END), (TEXT.replace("mat", "[MASK]"), START, START + 6)):
        actual, wanted = (predict_span(model, text, start, end) for model in (renamed, bert))
        assert actual.visible_spans == wanted.visible_spans and actual.answer == wanted.answer
    assert directionality(text, [renamed]).readers[0].answer == wanted.answer


def test_what_cannot_be_asked_is_refused_in_a_sentence(readers, headless_bert):
    with pytest.raises(InputError, match="is no part of it"):
        predict_span(readers["left_to_right"], TEXT, 5, 5)
    with pytest.raises(InputError, match="Shorten the text"):
        predict_span(readers["left_to_right"], "cat " * 200 + "mat", 800, 803)
    with pytest.raises(MissingHead):
        predict_span(headless_bert, TEXT, START, END)


def test_no_reader_at_all():
    with pytest.raises(InputError, match="at least one model"):
        directionality(TEXT, [])
