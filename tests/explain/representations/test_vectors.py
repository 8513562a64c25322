"""Embeddings taken apart, neighbours, occurrences, principal components."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import Cancelled, InputError, WordNotFound
from bert_tf.explain.representations.embedding_tables import embedding_table
from bert_tf.explain.representations.input_embeddings import embedding_parts, mean_by_distance, position_similarity
from bert_tf.explain.representations.projection import project_to_plane, tsne, umap
from bert_tf.explain.representations.sentence_similarity import sentence_similarity
from bert_tf.explain.representations.vectors import (
    cosine_similarities,
    nearest_tokens,
    principal_components,
    word_ids,
    word_vectors,
)
from bert_tf.explain.representations.word_senses import occurrences, word_senses
from bert_tf.models import view

GOLDEN = Path(__file__).parents[2] / "golden"


def test_the_parts_add_up_to_what_the_model_normalises(tiny_bert):
    trace = tiny_bert.trace("the cats [MASK]", "it ran")
    actual = embedding_parts(tiny_bert, trace)
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
    }
    summed = np.asarray(view(tiny_bert.model, ("embeddings_sum",))(batch)["embeddings_sum"])[0]
    np.testing.assert_allclose(actual.total, summed, atol=1e-6)
    np.testing.assert_array_equal(
        actual.vectors[0, 4], embedding_table(tiny_bert, "token")[tiny_bert.tokenizer.mask_id]
    )
    for token in range(trace.length):
        a, b = actual.vectors[0, token], actual.vectors[2, token]
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert actual.cosines[token, 0, 2] == pytest.approx(cosine, abs=1e-5)
        share = a @ summed[token] / (summed[token] @ summed[token])
        assert actual.shares[0, token] == pytest.approx(share, abs=1e-4)
    np.testing.assert_allclose(actual.shares.sum(axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(actual.norms, np.sqrt((actual.vectors**2).sum(-1)), rtol=1e-5)


def test_a_word_is_its_own_nearest_and_the_rest_follow_by_cosine(tiny_bert):
    table = embedding_table(tiny_bert, "token").astype(np.float64)
    dog = tiny_bert.tokenizer.vocab.index("dog")
    for centred in (False, True):
        rows = table - table.mean(axis=0) * centred
        cosines = rows @ rows[dog] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[dog])
        actual = nearest_tokens(tiny_bert, table[dog], 5, centred)
        assert [one.id for one in actual] == np.argsort(-cosines)[:5].tolist()
        assert actual[0].token == "dog" and actual[0].similarity == pytest.approx(1, abs=1e-5)
        assert actual[4].similarity == pytest.approx(np.sort(cosines)[-5], abs=1e-5)


def test_several_vectors_have_each_their_neighbours(tiny_bert):
    rows = embedding_table(tiny_bert, "token")[[7, 9]]
    actual = nearest_tokens(tiny_bert, rows, 3)
    for row, several in zip(rows, actual):
        alone = nearest_tokens(tiny_bert, row, 3)
        assert [one.id for one in several] == [one.id for one in alone]
        assert [one.similarity for one in several] == pytest.approx([one.similarity for one in alone], abs=1e-5)
    assert [one[0].id for one in actual] == [7, 9]


def test_neighbours_can_be_words_only(tiny_bert):
    ids = word_ids(tiny_bert.tokenizer)
    assert not set(ids.tolist()) & set(tiny_bert.tokenizer.special_ids) and len(ids) > 100
    vector = embedding_table(tiny_bert, "token")[tiny_bert.tokenizer.mask_id]
    every, words = nearest_tokens(tiny_bert, vector, 30), nearest_tokens(tiny_bert, vector, 20, among=ids)
    assert every[0].token == "[MASK]" and list(words) == [one for one in every if one.id in ids][:20]


def test_a_zero_vector_is_like_nothing(tiny_bert):
    assert not cosine_similarities(np.zeros((1, 3)), np.ones((2, 3))).any()
    assert nearest_tokens(tiny_bert, np.zeros(32), 1)[0].similarity == 0


def test_a_word_of_several_pieces_is_their_mean(tiny_bert):
    trace = tiny_bert.trace("the cats sat", "it ran")
    actual = word_vectors(trace)
    assert actual.shape == (3, 5, 32)
    np.testing.assert_allclose(actual[:, 1], trace.hidden_states[:, 2:4].mean(axis=1), atol=1e-6)
    with pytest.raises(InputError, match="hidden_states=True"):
        word_vectors(tiny_bert.trace("the cat", hidden_states=False))


def test_a_word_is_found_wherever_it_stands(tiny_bert):
    texts = ["the bank of the river", "a cat", "Bank money is in the bank"]
    actual = occurrences(tiny_bert, texts, "bank")
    assert actual.texts == (0, 2, 2) and [word.index for word in actual.words] == [1, 0, 5]
    assert actual.vectors.shape == (3, 3, 32)
    trace = tiny_bert.trace(texts[0])
    np.testing.assert_allclose(actual.vectors[:, 0], trace.hidden_states[:, 2], atol=1e-5)
    first = occurrences(tiny_bert, texts, "bank", most=2)
    assert first.texts == (0, 2) and [word.index for word in first.words] == [1, 0]
    exactly = occurrences(tiny_bert, texts, "bank", most=3)
    assert (first.left_out, exactly.left_out, actual.left_out) == (1, 0, 0)
    with pytest.raises(WordNotFound, match="none of the 3 texts"):
        occurrences(tiny_bert, texts, "spring")
    with pytest.raises(Cancelled):
        occurrences(tiny_bert, texts, "bank", progress=lambda done, total: False)


def test_a_text_alone_is_not_taken_for_a_list_of_its_letters(tiny_bert):
    text = "the bank of the river"
    for read, name in (
        (lambda: occurrences(tiny_bert, text, "bank"), "texts"),
        (lambda: word_senses(tiny_bert, "bank", text), "sentences"),
        (lambda: word_senses(tiny_bert, "bank", input=text), "lines"),
        (lambda: sentence_similarity(tiny_bert, text), "sentences"),
        (lambda: sentence_similarity(tiny_bert, [text], input=text), "texts"),
    ):
        with pytest.raises(InputError, match=f"Give a list of {name}, such as .*bank.*, not one alone"):
            read()
    with pytest.raises(InputError, match="word must be a string, not list"):
        occurrences(tiny_bert, [text], ["bank"])


def test_principal_components_are_the_covariances_eigenvectors():
    data = np.random.default_rng(0).normal(size=(20, 6)) * [5, 3, 1, 1, 1, 1]
    coordinates, shares = principal_components(data, 2)
    values, vectors = np.linalg.eigh(np.cov(data.T, bias=True))
    np.testing.assert_allclose(shares, values[::-1][:2] / values.sum(), atol=1e-9)
    np.testing.assert_allclose(np.abs(coordinates), np.abs((data - data.mean(0)) @ vectors[:, ::-1][:, :2]), atol=1e-9)


def test_fewer_points_than_components_leave_zeros():
    coordinates, shares = principal_components(np.ones((1, 4)), 3)
    assert coordinates.shape == (1, 3) and not coordinates.any() and not shares.any()


def test_a_vector_of_another_size_is_refused(tiny_bert):
    with pytest.raises(InputError, match=r"shape \[5\].*\[32\]"):
        nearest_tokens(tiny_bert, np.zeros(5))
    with pytest.raises(InputError, match="'colour'"):
        embedding_table(tiny_bert, "colour")


@pytest.mark.parametrize(
    "folder, reason",
    [
        ("modernbert", "its layers rotate queries and keys by their positions"),
        ("family/deberta", "its attention scores also compare contents with relative positions"),
    ],
)
def test_a_model_without_position_embeddings_tells_where_its_positions_are(folder, reason):
    bert = bert_tf.load(GOLDEN / folder)
    with pytest.raises(InputError, match=rf"{bert.name} has no table of positions: {reason}\.$"):
        position_similarity(bert)


def test_the_mean_by_distance_is_that_of_the_pairs_so_far_apart():
    values = np.random.default_rng(0).normal(size=(7, 7))
    for most, count in ((3, 4), (64, 7)):
        actual = mean_by_distance(values, most)
        wanted = [[values[row, row + gap] for row in range(7 - gap)] for gap in range(count)]
        np.testing.assert_allclose(actual, [sum(line) / len(line) for line in wanted])


def test_vectors_that_cannot_be_compared_or_projected_are_refused(tiny_bert):
    vectors = np.random.default_rng(0).normal(size=(20, 8))
    unknown = np.where(np.arange(20)[:, None] == 3, np.nan, vectors)
    width = tiny_bert.config.hidden_size
    for call, said in (
        (lambda: cosine_similarities(vectors, vectors[:, :3]), r"have the shapes .* not \[20, 8\] and \[20, 3\]"),
        (lambda: cosine_similarities(vectors[0]), r"have the shapes .* not \[8\] and \[8\]"),
        (lambda: nearest_tokens(tiny_bert, np.full(width, np.nan)), "numbers that are not finite"),
        (lambda: principal_components(unknown), "numbers that are not finite"),
        (lambda: umap(unknown), "numbers that are not finite"),
        (lambda: tsne(unknown), "numbers that are not finite"),
        (lambda: project_to_plane(unknown), "numbers that are not finite"),
        (lambda: umap(vectors[0]), r"have the shape \[W, H\], not \[8\]"),
        (lambda: principal_components(vectors, -1), "count must be at least 1, not -1"),
        (lambda: umap(vectors, 0), "count must be at least 1, not 0"),
        (lambda: umap(vectors, neighbours=-1), "neighbours must be at least 2, not -1"),
        (lambda: tsne(vectors, 4), "count must be 1 to 3, not 4"),
        (lambda: tsne(vectors, perplexity=0), "perplexity must be above 0, not 0"),
        (lambda: tsne(vectors, perplexity=np.nan), "perplexity must be above 0, not nan"),
    ):
        with pytest.raises(InputError, match=said):
            call()
