"""Profiles of heads over texts, their distances, their map and their clusters."""

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import jensen_shannon, profile_heads, profile_trace, summarise_heads
from bert_tf.explain.attention.head_profile import cluster_heads, head_distances, project_heads


def test_distances_are_mean_divergences_between_what_heads_look_at(tiny_bert):
    maps = tiny_bert.trace("the cat sat", "it ran").attentions
    actual = head_distances(maps)
    flat = maps.reshape(8, *maps.shape[2:]).astype(np.float64)
    for one in range(8):
        for other in range(8):
            expected = np.mean([jensen_shannon(p, q) for p, q in zip(flat[one], flat[other])])
            assert actual[one, other] == pytest.approx(expected, abs=1e-5)


def test_the_comparison_of_heads_tells_how_far_it_is_and_can_be_stopped(tiny_bert):
    trace, messages = tiny_bert.trace("the cat sat"), []
    profile_trace(trace, progress=lambda *steps: messages.append(steps))
    assert messages == [(one, 7) for one in range(1, 8)]
    with pytest.raises(Cancelled):
        profile_trace(trace, progress=lambda done, total: done < 3)


def test_a_profile_weighs_texts_by_their_tokens(tiny_bert):
    texts = ["the cat sat on the mat", ("it ran", "she sat")]
    actual = profile_heads(tiny_bert, texts)
    traces = [tiny_bert.trace(texts[0]), tiny_bert.trace(*texts[1])]
    lengths = [trace.length for trace in traces]
    assert (actual.num_texts, actual.num_tokens, actual.num_skipped) == (2, sum(lengths), 0)
    for name in ("entropy", "previous_share", "sep_share"):
        parts = [getattr(summarise_heads(trace), name) for trace in traces]
        np.testing.assert_allclose(getattr(actual.summary, name), np.average(parts, axis=0, weights=lengths))
    parts = [head_distances(trace.attentions) for trace in traces]
    np.testing.assert_allclose(actual.distances, np.average(parts, axis=0, weights=lengths), atol=1e-6)


def test_a_trace_alone_has_the_profile_of_its_text(tiny_bert):
    one, other = profile_trace(tiny_bert.trace("the cat sat")), profile_heads(tiny_bert, ["the cat sat"])
    np.testing.assert_array_equal(one.distances, other.distances)
    np.testing.assert_array_equal(one.summary.entropy, other.summary.entropy)


def test_only_some_rows_of_a_long_text_are_compared(tiny_bert):
    trace = tiny_bert.trace("the cat sat on the mat in the park")
    assert trace.length == 11
    for count, queries in ((1, [5]), (2, [2, 8]), (4, [1, 4, 6, 9]), (11, range(11)), (64, range(11))):
        actual = profile_trace(trace, tokens_per_text=count)
        np.testing.assert_array_equal(actual.distances, head_distances(trace.attentions[:, :, list(queries)]))


@pytest.mark.parametrize("count", [0, -2])
def test_no_row_of_a_text_is_too_few(count, tiny_bert):
    for call in (
        lambda: profile_heads(tiny_bert, ["it ran"], count),
        lambda: profile_trace(tiny_bert.trace("it"), count),
    ):
        with pytest.raises(InputError, match=f"tokens_per_text must be at least 1, not {count}."):
            call()


def test_texts_without_anything_are_passed_over_and_counted(tiny_bert):
    assert profile_heads(tiny_bert, ["the cat", "  ", "", "half \ud800"]).num_skipped == 3
    with pytest.raises(InputError, match="None of the texts can be read"):
        profile_heads(tiny_bert, [" "])
    with pytest.raises(InputError, match="Give a list of texts, such as .*not one alone"):
        profile_heads(tiny_bert, "the cat")


def test_it_can_be_stopped(tiny_bert):
    with pytest.raises(Cancelled):
        profile_heads(tiny_bert, ["the cat", "it ran"], progress=lambda done, total: False)


def test_heads_that_do_alike_stand_together():
    near = np.array(
        [
            [0, 0.1, 0.9, 0.9, 0.9],
            [0.1, 0, 0.9, 0.9, 0.9],
            [0.9, 0.9, 0, 0.1, 0.1],
            [0.9, 0.9, 0.1, 0, 0.1],
            [0.9, 0.9, 0.1, 0.1, 0],
        ]
    )
    assert cluster_heads(near, 2).tolist() == [1, 1, 0, 0, 0]
    places = project_heads(near)
    assert places.shape == (5, 2)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert apart[0, 1] < 0.3 * apart[0, 2] and apart[3, 4] < 0.3 * apart[1, 4]


@pytest.mark.parametrize("heads", [1, 2])
def test_a_model_of_a_head_or_two_has_a_map_too(heads):
    distances = np.full((heads, heads), 0.5) - 0.5 * np.eye(heads)
    assert project_heads(distances).shape == (heads, 2) and len(set(cluster_heads(distances))) == heads
