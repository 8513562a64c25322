"""Agreement of attention with dependencies: the file format, and the counting against loops."""

from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import head_profiles
from bert_tf.explain.attention.syntax import (
    ConlluError,
    ParsedSentence,
    read_conllu,
    syntax_agreement,
    word_attention,
)
from bert_tf.explain.datasets.text_rows import TextRow


def _line(number, word, head, relation, tag="_"):
    return "\t".join([str(number), word, "_", tag, "_", "_", str(head), relation, "_", "_"])


FILE = [
    "# text = the cats sat",
    _line(1, "the", 2, "det", "DET") + "\n",
    _line(2, "cats", 3, "nsubj", "NOUN") + "\n",
    _line(3, "sat", 0, "root", "VERB"),
    "\n",
    _line("1-2", "itran", "_", "_"),
    _line(1, "it", 2, "nsubj", "PRON"),
    _line("1.1", "x", "_", "_"),
    _line(2, "ran", 0, "root"),
]


@pytest.fixture(scope="module")
def sentences():
    return read_conllu(FILE)


def test_the_format_is_read(sentences):
    assert sentences == (
        ParsedSentence(("the", "cats", "sat"), (2, 3, 0), ("det", "nsubj", "root"), ("DET", "NOUN", "VERB")),
        ParsedSentence(("it", "ran"), (2, 0), ("nsubj", "root"), ("PRON", "_")),
    )
    numbers = [sentences[0].word_at(at) for at in range(-1, len("the cats sat") + 1)]
    assert numbers == [None, 0, 0, 0, None, 1, 1, 1, 1, None, 2, 2, 2, None]
    assert read_conllu([]) == ()


def test_bad_lines_are_named():
    with pytest.raises(ConlluError, match="Line 2 has 1 fields"):
        read_conllu([FILE[1], "nonsense"])
    with pytest.raises(ConlluError, match="Line 1: the head '7'"):
        read_conllu([_line(1, "the", 7, "det")])


def test_each_head_is_counted_by_its_most_attended_word(tiny_bert, sentences):
    actual = syntax_agreement(tiny_bert, sentences)
    groups = {0: [[1], [2, 3], [4]], 1: [[1], [2]]}
    looks = np.zeros((2, 3, 2, 4))  # direction, dependent, layer, head
    for row, (which, dependent, head) in enumerate([(0, 0, 1), (0, 1, 2), (1, 0, 1)]):
        trace = tiny_bert.trace(" ".join(sentences[which].words))
        attention = word_attention(trace, groups[which])
        others = [word for word in range(len(groups[which])) if word != dependent]
        for layer in range(2):
            for one in range(4):
                to = max(others, key=lambda word: attention[layer, one, dependent, word])
                by = max(others, key=lambda word: attention[layer, one, word, dependent])
                looks[:, row, layer, one] = to == head, by == head
    np.testing.assert_allclose(actual.overall.dependent_to_head, looks[0].mean(axis=0))
    np.testing.assert_allclose(actual.overall.head_to_dependent, looks[1].mean(axis=0))
    np.testing.assert_allclose(actual.overall.best_direction, looks.mean(axis=1).max(axis=0))
    assert (actual.overall.best_direction != actual.overall.dependent_to_head).any()
    np.testing.assert_allclose(actual.relations["nsubj"].dependent_to_head, looks[0, 1:].mean(axis=0))
    assert list(actual.relations) == ["nsubj", "det"] and actual.relations["nsubj"].count == 2
    assert (actual.overall.count, actual.num_sentences, actual.num_skipped) == (3, 2, 0)


def test_the_usual_distance_is_the_baseline(tiny_bert):
    chain = ParsedSentence(("the", "cat", "sat", "on"), (2, 3, 0, 1), ("det", "nsubj", "root", "case"))
    actual = syntax_agreement(tiny_bert, [chain]).overall
    assert (actual.offset, actual.offset_accuracy) == (1, pytest.approx(2 / 3))


def test_a_perfect_head_agrees_with_everything(sentences):
    maps = np.full((1, 1, 6, 6), 0.01, np.float32)
    maps[0, 0, 1, 2] = maps[0, 0, 2, 4] = maps[0, 0, 3, 4] = 0.9

    def trace(text, hidden_states):
        return SimpleNamespace(
            attentions=maps,
            length=6,
            truncated=(0, 0),
            sources=(None, "a", "a", "a", "a", None),
            offsets=(None, (0, 3), (4, 7), (7, 8), (9, 12), None),
        )

    actual = syntax_agreement(SimpleNamespace(trace=trace), sentences[:1])
    assert actual.overall.dependent_to_head.tolist() == [[1.0]]


def test_a_word_without_attention_agrees_with_nothing():
    # The only links of the first word of a model that reads from left to right are to itself and to [CLS].
    maps = np.tril(np.full((1, 1, 5, 5), 0.2, np.float32))
    sentence = ParsedSentence(("the", "cats", "sat"), (2, 0, 2), ("det", "root", "xcomp"))

    def trace(text, hidden_states):
        offsets = (None, (0, 3), (4, 8), (9, 12), None)
        sources = (None, "a", "a", "a", None)
        return SimpleNamespace(attentions=maps, length=5, truncated=(0, 0), sources=sources, offsets=offsets)

    actual = syntax_agreement(SimpleNamespace(trace=trace), [sentence]).relations
    assert actual["det"].dependent_to_head.tolist() == [[0.0]] and actual["det"].head_to_dependent.tolist() == [[1.0]]
    assert actual["xcomp"].head_to_dependent.tolist() == [[0.0]]


def test_a_profile_of_heads_reads_each_sentence_once(tiny_bert, sentences, monkeypatch):
    long = ParsedSentence(("cat",) * 200, (2,) * 200, ("dep",) * 200)
    parsed = [long, *sentences, ParsedSentence(("\u200b",), (0,), ("root",))]
    expected = syntax_agreement(tiny_bert, parsed)
    read, seen = [], []
    trace = type(tiny_bert).trace
    monkeypatch.setattr(type(tiny_bert), "trace", lambda *args, **more: read.append(args) or trace(*args, **more))
    rows = [TextRow(number, one.text, parsed=one) for number, one in enumerate(parsed, 1)]
    actual = head_profiles(tiny_bert, rows=rows, progress=lambda *steps: seen.append(steps))
    assert len(read) == len(parsed) and seen == [(done, len(parsed)) for done in range(1, len(parsed) + 1)]
    np.testing.assert_array_equal(actual.syntax.overall.best_direction, expected.overall.best_direction)
    assert (actual.syntax.num_sentences, actual.syntax.num_skipped) == (len(parsed), 2)
    assert list(actual.syntax.relations) == list(expected.relations)


@pytest.mark.parametrize("word", ["\u200b", "\x01", "\ufeff"])
def test_a_sentence_that_cannot_be_read_is_left_out(word, tiny_bert, sentences):
    unreadable = ParsedSentence((word,), (0,), ("root",))
    actual = syntax_agreement(tiny_bert, [unreadable, *sentences])
    assert (actual.num_skipped, actual.overall.count) == (1, 3)


def test_long_sentences_are_skipped_and_work_can_be_cancelled(tiny_bert, sentences):
    long = ParsedSentence(("cat",) * 200, (2,) * 200, ("dep",) * 200)
    assert syntax_agreement(tiny_bert, [long, *sentences]).num_skipped == 1
    with pytest.raises(InputError, match="No sentence"):
        syntax_agreement(tiny_bert, [long])
    with pytest.raises(Cancelled):
        syntax_agreement(tiny_bert, sentences, progress=lambda done, total: False)
