"""The page Sentence similarity."""

import numpy as np
import pytest

import bert_tf
from bert_tf.explain import sentence_similarity
from tests.app.page_reading import page_text, param, run_until_done
from tests.app.test_representation_pages import array, figure

LINES = "The cat sat on the mat.\nA dog ran in the park.\nThe bank of money."
SENTENCES = LINES.splitlines()


@pytest.fixture(scope="module")
def bert(explorer_home):
    return bert_tf.load(explorer_home / "tiny-cased")


def test_the_matrix_and_the_pairs_are_the_librarys(open_app, bert):
    app = run_until_done(open_app(page="sentence_similarity", **{"sentence_similarity.lines": LINES}))
    expected = sentence_similarity(bert, SENTENCES)
    np.testing.assert_allclose(array(figure(app, 0)[0]["z"]), expected.cosines, atol=1e-4)
    pairs = app.dataframe[0].value
    assert pairs["cosine"].is_monotonic_decreasing and len(pairs) == 3
    assert "was not trained to compare sentences" in page_text(app)
    app.segmented_control(key="w_sentence_similarity_pooling").set_value("max").run()
    app = run_until_done(app)
    assert param(app, "sentence_similarity.pooling") == "max"
    other = sentence_similarity(bert, SENTENCES, pooling="max")
    np.testing.assert_allclose(array(figure(app, 0)[0]["z"]), other.cosines, atol=1e-4)


def test_a_file_is_searched_for_the_most_similar_texts(open_app, bert):
    link = {"sentence_similarity.lines": SENTENCES[0], "sentence_similarity.search": "1"}
    app = run_until_done(open_app(page="sentence_similarity", **link))
    lines = bert_tf.sample_file("sentences.txt").read_text("utf-8").splitlines()
    expected = sentence_similarity(bert, SENTENCES[:1], input=[line.split("\t")[0] for line in lines if line.strip()])
    actual = app.dataframe[0].value
    assert list(actual["text"]) == [one.text for one in expected.nearest[0]]
    np.testing.assert_allclose(actual["cosine"], [one.similarity for one in expected.nearest[0]], atol=1e-4)


def test_a_sentence_that_is_cut_is_told_and_lines_end_as_in_the_field(open_app):
    app = open_app(page="sentence_similarity")
    lines = "The cat " * 300 + "\nA dog.\u2028It ran.\n\u200b"
    app.text_area(key="w_sentence_similarity_lines").set_value(lines).run()
    app = run_until_done(app)
    assert "1 sentence is longer than 2,000 characters: its end is left out." in page_text(app)
    assert array(figure(app, 0)[0]["z"]).shape == (2, 2)


def test_one_sentence_is_too_few_without_a_file(open_app):
    app = open_app(page="sentence_similarity", **{"sentence_similarity.lines": "The cat."})
    assert "Type at least two sentences" in page_text(app) and not app.exception


def test_without_a_sentence_one_is_asked_for_where_a_file_is_searched(open_app):
    link = {"sentence_similarity.lines": " ", "sentence_similarity.search": "1"}
    text = page_text(open_app(page="sentence_similarity", **link))
    assert "Type a sentence." in text and "at least two" not in text


def test_sentences_longer_than_the_model_reads_are_told(open_app):
    lines = "\n".join(["a " * 900, "b " * 900, "The cat sat."])
    app = open_app(page="sentence_similarity")
    app.text_area(key="w_sentence_similarity_lines").set_value(lines).run()
    run_until_done(app)
    assert [one.value for one in app.warning] == ["2 sentences are longer than 512 tokens: their ends are left out."]
