"""Nearest places in other texts, against cosines worked out one text at a time."""

import dataclasses

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import (
    Context,
    MostAttendedToken,
    count_labels,
    count_offsets,
    head_outputs,
    matched_labels,
    nearest_contexts,
    parsed_labels,
)
from bert_tf.explain.attention.value_attention import value_vectors
from bert_tf.explain.datasets.text_rows import TextRow, read_rows
from bert_tf.inference.bert import Bert
from bert_tf.inference.words import words_of
from tests.conftest import make_bert, randomise
from tests.explain.test_family_explain import GOLDEN_FOLDERS, NAMES, text_for
from tests.layers.test_causal import APART, LEFT, make_reader

ROWS = (
    TextRow(1, "the bank of the river"),
    TextRow(2, "money in the bank", "the cats sat on the mat"),
    TextRow(3, "\u200b"),
    *(TextRow(number, "she has a big carrot " * (number % 3 + 1)) for number in range(4, 14)),
)


TREES = """\
1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tbank\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsat\t_\tVERB\t_\t_\t0\troot\t_\t_

1\tcats\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tca-ts\t_\tX\t_\t_\t0\troot\t_\t_
3\t.\t_\t_\t_\t_\t2\tpunct\t_\t_
"""


def one_head(bert, text_a, text_b, layer, head):
    """A trace of the text alone, and its attention by the values of one head."""
    trace = bert.trace(text_a, text_b, attentions=True, hidden_states=True)
    maps, values = trace.attentions.astype(np.float64), value_vectors(bert, trace).astype(np.float64)
    return trace, maps[layer, head] @ values[layer, head]


def by_hand(bert, layer, rows, head=None):
    """(row, position, token) of every place and their states, or what one head puts together there."""
    places, states = [], []
    for row in rows:
        if head is None:
            trace = bert.trace(row.text_a, row.text_b)
            vectors = trace.hidden_states[layer]
        else:
            trace, vectors = one_head(bert, row.text_a, row.text_b, layer, head)
        for position, source in enumerate(trace.sources):
            if source is not None:
                places.append((row.number, position, trace.tokens[position]))
                states.append(vectors[position])
    return places, np.array(states, np.float64)


@pytest.mark.parametrize(
    "layer, centred, head",
    [
        (0, False, None),
        (1, True, None),
        (2, True, None),
        (2, False, None),
        (0, True, 3),
        (1, False, 0),
    ],
)
def test_the_nearest_places_are_those_of_the_largest_cosines(tiny_bert, layer, centred, head):
    if head is None:
        queries = tiny_bert.trace("a bank by the river").hidden_states[layer, 2:4]
    else:
        queries = one_head(tiny_bert, "a bank by the river", None, layer, head)[1][2:4]
    actual = nearest_contexts(tiny_bert, queries, layer, ROWS, 6, centred, head=head)
    places, states = by_hand(tiny_bert, layer, [row for row in ROWS if row.number != 3], head)
    middle = states.mean(axis=0) * centred
    rows, asked = states - middle, queries - middle
    cosines = (asked @ rows.T) / np.linalg.norm(asked, axis=1)[:, None] / np.linalg.norm(rows, axis=1)
    assert (actual.tokens_compared, actual.rows_read) == (len(places), len(ROWS) - 1)
    for line, near in zip(cosines, actual.nearest, strict=True):
        assert [one.similarity for one in near] == pytest.approx(np.sort(line)[::-1][:6], abs=1e-4)
        for one in near:
            place = places.index((one.row.number, one.position, one.token))
            assert line[place] == pytest.approx(one.similarity, abs=1e-4)


def test_a_token_is_nearest_to_itself_and_its_word_is_marked(tiny_bert):
    trace = tiny_bert.trace("money in the bank", "the cats sat on the mat")
    position = trace.tokens.index("##s")
    actual = nearest_contexts(tiny_bert, trace.hidden_states[2, [position]], 2, ROWS, 1, True)
    ((one,),) = actual.nearest
    assert (one.row.number, one.position, one.token) == (2, position, "##s")
    assert one.similarity == pytest.approx(1, abs=1e-5)
    assert one.parts == ("the ", "cats", " sat on the mat") and one.word.source == "b"


def test_what_is_read_is_bounded_and_can_be_stopped(tiny_bert):
    vector = tiny_bert.trace("the bank").hidden_states[1, [1]]
    actual = nearest_contexts(tiny_bert, vector, 1, ROWS, 50, most=7)
    assert (actual.tokens_compared, actual.rows_read, len(actual.nearest[0])) == (7, 2, 7)
    seen = []
    nearest_contexts(tiny_bert, vector, 1, ROWS, progress=lambda *step: seen.append(step))
    assert seen == [(8, 13), (13, 13)]
    with pytest.raises(Cancelled):
        nearest_contexts(tiny_bert, vector, 1, ROWS, progress=lambda done, total: False)


@pytest.mark.parametrize("name", ["tiny", *NAMES, LEFT, APART])
def test_what_a_head_puts_together_is_its_attention_times_its_values(tiny_bert, name):
    """Of every family member, and of readers one way, whose heads may stand in two stacks."""
    bert = tiny_bert if name == "tiny" else bert_tf.load(GOLDEN_FOLDERS / name) if name in NAMES else make_reader(name)
    layers, heads, width = (
        getattr(bert.config, one) for one in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    for layer, head in ((0, 0), (layers - 1, heads - 1)):
        trace, wanted = one_head(bert, text_for(bert), None, layer, head)
        actual = head_outputs(bert, trace.hidden_states[layer], layer, head)
        assert actual.shape == (trace.length, width // heads) and actual.dtype == np.float32
        np.testing.assert_allclose(actual, wanted, atol=2e-5)
        near = nearest_contexts(bert, actual[[2]], layer, [TextRow(1, text_for(bert))], 1, head=head).nearest[0]
        assert near[0].position == 2 and near[0].similarity == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "name, layer, heads, centred",
    [
        ("tiny", 0, (3,), True),
        ("tiny", 1, (0, 2, 3), True),
        ("tiny", 1, (2, 0), False),
        (LEFT, 0, (0, 1), True),
        (APART, 1, (0, 3), True),
    ],
)
def test_several_heads_are_compared_by_the_mean_of_their_cosines_and_say_where_they_look(
    tiny_bert, name, layer, heads, centred
):
    """Against vectors of length 1 put side by side, and maps of a trace, one text at a time."""
    bert = tiny_bert if name == "tiny" else make_reader(name)
    asked = head_outputs(bert, bert.trace("a bank by the river").hidden_states[layer], layer, heads)[[2, 3]]
    actual = nearest_contexts(bert, asked, layer, ROWS, 200, centred, head=heads)
    read = [by_hand(bert, layer, [row for row in ROWS if row.number != 3], head) for head in heads]
    query = [one_head(bert, "a bank by the river", None, layer, head)[1][[2, 3]] for head in heads]
    joined = []
    for (_, states), own in zip(read, query, strict=True):
        middle = states.mean(axis=0) * centred
        joined.append([one / np.linalg.norm(one, axis=1, keepdims=True) for one in (own - middle, states - middle)])
    own, states = (np.concatenate(side, axis=1) for side in zip(*joined))
    cosines = own @ states.T / np.linalg.norm(own, axis=1)[:, None] / np.linalg.norm(states, axis=1)
    places = read[0][0]
    for line, near in zip(cosines, actual.nearest, strict=True):
        assert [one.similarity for one in near] == pytest.approx(np.sort(line)[::-1], abs=1e-4)
        for one in near:
            wanted = line[places.index((one.row.number, one.position, one.token))]
            assert wanted == pytest.approx(one.similarity, abs=1e-4)
    for one in actual.nearest[0]:
        trace = bert.trace(one.row.text_a, one.row.text_b)
        weights = trace.attentions[layer, list(heads), one.position].astype(np.float64).mean(axis=0)
        most_attended = one.most_attended
        assert most_attended.share == pytest.approx(weights.max(), abs=1e-5)
        assert weights[most_attended.position] == pytest.approx(weights.max(), abs=1e-5)
        assert (most_attended.token, most_attended.offset) == (
            trace.tokens[most_attended.position],
            most_attended.position - one.position,
        )
        words = [
            word for word in words_of(trace, trace.text_a, trace.text_b) if most_attended.position in word.positions
        ]
        assert ([most_attended.word] if most_attended.word else []) == words and most_attended.row is one.row
    without = nearest_contexts(bert, asked, layer, ROWS, 200, centred, head=heads, special=False).nearest[0]
    for one, usual in zip(without, actual.nearest[0], strict=True):
        trace = bert.trace(one.row.text_a, one.row.text_b)
        weights = trace.attentions[layer, list(heads), one.position].mean(axis=0)
        kept = [at for at, source in enumerate(trace.sources) if source is not None]
        assert one.most_attended.share == pytest.approx(weights[kept].max(), abs=1e-5)
        assert (
            one.most_attended.word is not None and one.most_attended.token == trace.tokens[one.most_attended.position]
        )
        assert (one.row, one.position, one.similarity) == (usual.row, usual.position, usual.similarity)
    assert any(one.most_attended.word is None for one in actual.nearest[0])
    offsets = [one.most_attended.offset for one in actual.nearest[0]]
    assert count_offsets(actual.nearest[0]) == {offset: offsets.count(offset) for offset in sorted(offsets)}
    assert len(set(offsets)) > 1


def test_states_look_nowhere(tiny_bert):
    (near,) = nearest_contexts(tiny_bert, tiny_bert.trace("the bank").hidden_states[1, [1]], 1, ROWS).nearest
    assert {one.most_attended for one in near} == {None} and count_offsets(near) == {}


def test_the_file_s_own_labels_are_those_of_the_words_found(tiny_bert):
    rows = read_rows(TREES, "conllu").rows
    vectors = head_outputs(tiny_bert, tiny_bert.trace("the cats").hidden_states[1], 1, 0)[[1]]
    (near,) = nearest_contexts(tiny_bert, vectors, 1, rows, 50, head=0).nearest
    output = {
        "the": ("DET", "det"),
        "bank": ("NOUN", "nsubj"),
        "sat": ("VERB", "root"),
        "cats": ("NOUN", "nsubj"),
        "ca": ("X", "root"),
        "-": ("X", "root"),
        "ts": ("X", "root"),
        ".": (None, "punct"),
    }
    assert {one.word.text for one in near} == set(output)
    assert list(zip(*parsed_labels(near))) == [output[one.word.text] for one in near]
    special = MostAttendedToken(rows[0], None, "[SEP]", 4, 0.5, 3)
    assert parsed_labels([special]) == (("[SEP]",), ("[SEP]",)) and parsed_labels([]) == ((), ())
    bare = dataclasses.replace(rows[0], parsed=dataclasses.replace(rows[0].parsed, tags=()))
    assert parsed_labels([MostAttendedToken(bare, near[0].word, "x", 1, 0.5, 0)])[0] == (None,)
    most_attended = [one.most_attended for one in near]
    wanted = [output[one.word.text] if one.word else (one.token, one.token) for one in most_attended]
    assert list(zip(*parsed_labels(most_attended))) == wanted
    (plain,) = nearest_contexts(tiny_bert, vectors, 1, ROWS, 2, head=0).nearest
    assert parsed_labels(plain) == ((None, None), (None, None))


@pytest.mark.parametrize(
    "at, to, most, around",
    [
        (2, 0, 99, ("«one» two ", "three", " four five six")),
        (2, 0, 8, ("«one» two ", "three", " four fi…")),
        (2, 1, 4, ("…«two» ", "three", " fou…")),
        (2, 1, 6, ("…e «two» ", "three", " four …")),
        (3, 0, 4, ("«one»…ree ", "four", " fiv…")),
        (3, 1, 4, ("…«two»…ree ", "four", " fiv…")),
        (2, 2, 4, ("…two ", "«three»", " fou…")),
        (0, 2, 4, ("", "one", " two…«three»…")),
        (0, 5, 4, ("", "one", " two…«six»")),
        (0, 1, 4, ("", "one", " «two»…")),
        (4, 5, 99, ("one two three four ", "five", " «six»")),
        (0, None, 4, ("", "one", " two…")),
    ],
)
def test_the_word_that_heads_look_at_is_marked_in_the_sentence(tiny_bert, at, to, most, around):
    text = "one two three four five six"
    words = words_of(tiny_bert.trace(text), text)
    row = TextRow(1, text, text)
    most_attended = None if to is None else MostAttendedToken(row, words[to], "x", 1, 0.5, 1)
    assert Context(row, words[at], "x", 1, 0.5, most_attended).around(most) == around
    other = MostAttendedToken(row, dataclasses.replace(words[1], source="b"), "x", 9, 0.5, 1)
    assert "«" not in "".join(Context(row, words[at], "x", 1, 0.5, other).around(99))


@pytest.fixture(scope="module")
def tagger():
    """A model that labels words, its weights random and so large that no label is the likeliest of all words."""
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    bert, settings = make_bert(seed=7), TaskSettings(task="tag", labels=("DET", "NOUN", "VERB", "PUNCT"))
    network = network_over(bert.model, task_type("tag"), settings)
    randomise(network, 7)
    rng = np.random.default_rng(7)
    for weight in network.head.weights:
        weight.assign(rng.normal(0, 1, weight.shape) * (len(weight.shape) > 1))
    task = TaskModel(settings, network, bert.tokenizer, bert.runtime)
    return Bert(bert.config, bert.tokenizer, bert.model, bert.runtime, "tagger", None, task)


def test_the_found_words_have_the_tagger_s_labels(tiny_bert, tagger):
    trace, steps = tiny_bert.trace("a bank by the river"), []
    (near,) = nearest_contexts(tiny_bert, trace.hidden_states[1, [2]], 1, ROWS, 20).nearest
    actual = matched_labels(tagger, near, lambda *step: steps.append(step))
    output = {text: tagger.task.predict([{"words": text.split()}])[0]["labels"] for text in {one.text for one in near}}
    wanted = [output[one.text][one.word.index] for one in near]  # words parted by spaces alone
    assert list(actual) == wanted and len(set(wanted)) > 1
    assert steps == [(done, len(output)) for done in range(1, len(output) + 1)]
    counts = count_labels(actual)
    assert counts == {label: wanted.count(label) for label in set(wanted)}
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    most_attended = MostAttendedToken(near[0].row, near[0].word, "x", 1, 0.5, 0)
    special = MostAttendedToken(near[0].row, None, "[SEP]", 9, 0.5, 8)
    assert matched_labels(tagger, [special, most_attended]) == ("[SEP]", actual[0])
    with pytest.raises(Cancelled):
        matched_labels(tagger, near, lambda done, total: False)


def test_a_word_that_the_tagger_parts_otherwise_has_the_label_at_its_first_letter(tiny_bert, tagger):
    text = "it don't rain, the 1.5 cats"
    output = tagger.task.predict([{"text": text}])[0]
    assert output["words"] == ["it", "do", "n't", "rain", ",", "the", "1.5", "cats"]
    every = tiny_bert.trace(text).hidden_states[1, [1]]
    (near,) = nearest_contexts(tiny_bert, every, 1, [TextRow(1, "the cat", text)], 40).nearest
    labels = matched_labels(tagger, near)
    wanted = {"it": 0, "don": 1, "'": 2, "t": 2, "rain": 3, ",": 4, "1": 6, ".": 6, "5": 6, "cats": 7}
    of_text = [(one.word.text, label) for one, label in zip(near, labels) if one.word.source == "b"]
    of_text = [(word, label) for word, label in of_text if word != "the"]
    assert {word for word, _ in of_text} == set(wanted) and len(set(output["labels"])) > 1
    assert all(label == output["labels"][wanted[word]] for word, label in of_text)
    assert count_labels((None, "NOUN", None)) == {"NOUN": 1}


def test_only_a_tagger_labels_words(tiny_bert):
    with pytest.raises(InputError, match="not fine-tuned to label words"):
        matched_labels(tiny_bert, ())


@pytest.mark.parametrize(
    "vectors, layer, rows, more, says",
    [
        (np.zeros((1, 8)), 2, ROWS, {"head": 0}, "no head 0 in layer 2"),
        (np.zeros((1, 8)), 1, ROWS, {"head": 4}, "no head 4 in layer 1"),
        (np.zeros((1, 32)), 1, ROWS, {"head": 0}, r"head outputs of this model are \[W, 8\]"),
        (np.zeros((1, 8)), 1, ROWS, {"head": (0, 1)}, r"head outputs of this model are \[W, 16\]"),
        (np.zeros((1, 16)), 1, ROWS, {"head": (1, 1)}, "Head 1 is named twice"),
        (np.zeros((1, 0)), 1, ROWS, {"head": ()}, "at least one head"),
        (np.zeros((1, 32)), 3, ROWS, {}, "no layer 3"),
        (np.zeros((1, 5)), 1, ROWS, {}, r"shape \[1, 5\]"),
        (np.zeros(32), 1, ROWS, {}, r"shape \[32\]"),
        (np.zeros((1, 32)), 1, ROWS[2:3], {}, "nothing to read"),
        (np.zeros((1, 32)), 1, ROWS, {"most": 0}, "at least 1"),
        (np.zeros((1, 32)), 1, ROWS, {"top_k": 0}, "top_k"),
    ],
)
def test_mistakes_are_told(tiny_bert, vectors, layer, rows, more, says):
    with pytest.raises(InputError, match=says):
        nearest_contexts(tiny_bert, vectors, layer, rows, **more)
