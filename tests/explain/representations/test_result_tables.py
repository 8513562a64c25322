"""Results about representations: their records and tables hold what their arrays hold."""

import json
import tracemalloc

import numpy as np
import pytest

from bert_tf import explain
from bert_tf.explain.datasets.confusion import ConfusionMatrix
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.explain.models.box_values import TokenValues
from bert_tf.explain.representations.logit_lens import ClassLogitLens
from bert_tf.explain.representations.vectors import word_ids
from bert_tf.results import with_named

ROWS = tuple(TextRow(number, text) for number, text in enumerate(("the cat sat", "a dog ran", "it ran to the dog"), 5))
ENDS = ("sat", "ran", "is big", "was small", "is red", "ate", "ended")


@pytest.fixture
def trace(tiny_bert):
    return tiny_bert.trace("the cats [MASK]", "it ran")


def record(result):
    """What JSON gives back of a result, whose figures can all be drawn."""
    for name in result.figures:
        assert result.figure(name).data and result.figure(name, dark=True).data
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def test_input_embeddings(tiny_bert, trace):
    actual = explain.input_embeddings(tiny_bert, trace, 3)
    table, plain = actual.to_frame(), record(actual)
    assert plain["parts"] == ["token", "segment", "position"] and plain["tokens"] == list(table["token"])
    for row, part in enumerate(actual.parts):
        np.testing.assert_allclose(table[f"{part}_share"], actual.shares[row])
        np.testing.assert_allclose(plain["norms"][row], table[f"{part}_norm"], atol=1e-6)
    np.testing.assert_allclose(table["cosine_token_position"], actual.cosines[:, 0, 2])
    assert [near[0]["token"] for near in plain["nearest"]] == [words.split()[0] for words in table["nearest"]]
    assert "vectors" not in plain and actual.to_arrays()["vectors"] is actual.vectors


def test_the_words_nearest_to_a_token_are_other_words(tiny_bert, trace):
    known = {tiny_bert.tokenizer.vocab[number] for number in word_ids(tiny_bert.tokenizer)}
    for token, near in zip(trace.tokens, explain.input_embeddings(tiny_bert, trace, 3).nearest):
        assert len(near) == 3 and {word.token for word in near} <= known - {str(token)}


def test_positions_and_other_vectors(tiny_bert):
    actual = explain.position_similarity(tiny_bert, 8)
    table, plain = actual.to_frame(), record(actual)
    np.testing.assert_allclose(np.ravel(plain["cosines"]), table["cosine"], atol=1e-6)
    last = table.iloc[-1]
    assert last["position_a"] == last["position_b"] == plain["positions"][-1]
    similarity = explain.VectorSimilarity(("a", "b"), np.array([[1, 0.5], [0.25, 1]]), ("one", "two"))
    table = similarity.to_frame()
    assert list(table["label_a"] + table["label_b"]) == ["aa", "ab", "ba", "bb"]
    assert list(table["cosine"]) == np.ravel(record(similarity)["cosines"]).tolist() == [1, 0.5, 0.25, 1]
    assert list(table["text_b"]) == ["one", "two"] * 2


def test_long_texts_stand_once_in_a_table_of_pairs():
    texts = tuple(f"{number} ".ljust(2000, "a") for number in range(100))
    similarity = explain.VectorSimilarity(texts, np.eye(100, dtype=np.float32), texts)
    explain.VectorSimilarity(("a",), np.eye(1)).to_frame()  # what is imported at first
    tracemalloc.start()
    try:
        table = similarity.to_frame()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10e6
    assert table["text_b"][9998] is table["label_a"][9800] is texts[98]  # pandas copied none


def test_a_label_with_the_name_of_a_column_has_a_column_too():
    values = TokenValues("logits", None, ("a", "b"), ("token", "X", "position"), np.arange(6.0).reshape(2, 3))
    table = values.to_frame()
    assert list(table) == ["position", "token", "label token", "X", "label position"]
    assert list(table["token"]) == ["a", "b"] and list(table["label token"]) == [0, 3]
    table = ClassLogitLens(("hidden_state", "b"), np.array([[0.25, 0.75]])).to_frame()
    assert table.to_dict("list") == {"hidden_state": [0], "class hidden_state": [0.25], "b": [0.75]}
    table = ConfusionMatrix(("true_label", "b"), np.array([[1, 2], [3, 4]]), {}).to_frame()
    assert list(table["true_label"]) == ["true_label", "b"] and list(table["class true_label"]) == [1, 3]
    both = with_named({"token": [1]}, (("token", [2]), ("label token", [3])), "label")
    assert both == {"token": [1], "label token": [2], "label label token": [3]}


def test_nearest_words(tiny_bert, trace):
    actual = explain.nearest_words(tiny_bert, trace, (2, 1), 3)
    table, plain = actual.to_frame(), record(actual)
    arrays = actual.to_arrays()
    assert arrays["ids"].shape == (2, 4, 3) and plain["vectors"] == ["static", "0", "1", "2"]
    np.testing.assert_allclose(table["similarity"], arrays["similarities"].ravel())
    assert plain["nearest"][1][0][0]["token"] == table["neighbour"][12] == actual.tokens[1]
    assert actual.nearest_other(1, 0).token != actual.tokens[1]
    assert list(table["position"].unique()) == [2, 1]


def test_nearest_contexts_and_their_counts(tiny_bert, trace):
    actual = explain.nearest(tiny_bert, trace, ROWS, (2, 3), 4, heads=(0, 1))
    table, plain = actual.to_frame(), record(actual)
    flat = [one for near in plain["nearest"] for one in near]
    assert [one["similarity"] for one in flat] == pytest.approx(table["similarity"].to_numpy(), abs=1e-7)
    assert list(table["context_token"]) == [one["token"] for one in flat] and set(table["token"]) == {
        trace.tokens[2],
        trace.tokens[3],
    }
    assert list(table["looks_at_offset"]) == [one["most_attended"]["offset"] for one in flat]
    assert {one["row"] for one in flat} <= {5, 6, 7} and "part_of_speech" not in table
    labelled = actual.labelled([str(number) for number in range(len(actual.places))])
    assert [one["part_of_speech"] for near in labelled.to_dict()["nearest"] for one in near] == list("01234567")
    counts = explain.count_contexts(labelled.nearest[0])
    table, plain = counts.to_frame(), record(counts)
    assert plain["parts_of_speech"] == dict.fromkeys("0123", 1) and plain["relations"] is None
    assert table[table["counted"] == "offsets"]["looked_at"].sum() == sum(plain["offsets"].values()) == 4


def test_factors_and_their_units(tiny_bert, trace):
    actual = explain.neuron_factors(tiny_bert, trace, 3, layers=(1, 1), special=False, top_k=4)
    table, plain = actual.to_frame(), record(actual)
    np.testing.assert_allclose(plain["weights"], actual.weights, atol=1e-6)
    own = table[table["factor"] == 1]
    np.testing.assert_allclose(own["weight"], sorted(actual.weights[1], reverse=True))
    assert own["token"].iloc[0] == trace.tokens[actual.positions[actual.weights[1].argmax()]]
    assert "unit_weights" not in plain and actual.to_arrays()["unit_weights"].shape[1] == 1
    units = explain.FactorUnits(1, actual.units[1])
    weights = units.to_frame()["weight"].to_numpy()
    assert [unit["weight"] for unit in record(units)["units"]] == pytest.approx(weights, abs=1e-7)
    assert plain["units"][1] == record(units)["units"] and set(units.to_frame()["layer"]) == {1}


def test_word_senses(tiny_bert):
    lines = ["river | the bank of the river", "river | a big bank", "money | the bank has money", "money | a bank"]
    actual = explain.word_senses(tiny_bert, "bank", lines, layer=1, dimensions=3)
    table, plain = actual.to_frame(), record(actual)
    np.testing.assert_allclose(table[["x", "y", "z"]], actual.coordinates)
    np.testing.assert_allclose(plain["coordinates"], actual.coordinates, atol=1e-6)
    assert plain["senses"] == list(table["sense"]) and set(actual.figures) == {"points", "similarity", "senses"}
    np.testing.assert_allclose(plain["separation"]["within"], actual.separation.to_frame()["within"], atol=1e-6)
    assert record(actual.separation) == plain["separation"]
    assert "vectors" not in plain and actual.to_arrays()["vectors"].shape[:2] == (3, 4)
    assert "senses" not in explain.word_senses(tiny_bert, "bank", ["a bank", "the bank"]).figures


def test_layer_similarity(tiny_bert, other_bert, trace):
    actual = explain.compare_layers(tiny_bert, trace, None, other_bert)
    table, plain = actual.to_frame(), record(actual)
    np.testing.assert_allclose(table["cka"], actual.similarity.ravel())
    wanted = explain.layer_similarity(trace, other_bert.trace("the cats [MASK]", "it ran"))
    np.testing.assert_allclose(actual.similarity, wanted)
    assert plain["words"] == len(trace.words()) and plain["measure"] == "cka"
    masked = tiny_bert.trace("the cats sat", "it ran", mask=["sat"])
    np.testing.assert_allclose(explain.compare_layers(tiny_bert, masked, None, other_bert).similarity, wanted)


def test_a_concept(tiny_bert):
    concept = [f"the cat {end}" for end in ENDS]
    others = [f"{who} {end}" for who in ("she", "a dog") for end in ENDS]
    actual = explain.tcav(tiny_bert, ROWS, concept, others, target="dog", hide="last", runs=3)
    table, plain = actual.to_frame(), record(actual)
    np.testing.assert_allclose(table["score"], actual.scores.mean(axis=1))
    np.testing.assert_allclose(table["random_score"], np.mean(plain["random_scores"], axis=1), atol=1e-6)
    assert plain["is_significant"] == list(table["significant"]) and plain["rows"] == [5, 6, 7]
    slopes = actual.at(1)
    rows = slopes.to_frame()
    assert list(rows["slope"]) == sorted(actual.slopes[1], reverse=True)
    assert record(slopes)["rows"] == list(rows["row"]) and rows["text_a"][0] in {row.text_a for row in ROWS}
