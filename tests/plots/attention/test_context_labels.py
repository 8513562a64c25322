"""Bars of what was found and of what heads look at there."""

from bert_tf.plots.attention.context_labels import offset_bars, paired_bars
from bert_tf.plots.description import description


def test_labels_stand_side_by_side_told_apart_by_more_than_their_colour():
    actual, looked = paired_bars({"NOUN": 3, "<x>": 1}, {"DET": 2, "NOUN": 1}).data
    assert list(actual.y) == list(looked.y) == ["NOUN", "DET", "&lt;x&gt;"]
    assert (list(actual.x), list(looked.x)) == ([3, 0, 1], [1, 2, 0])
    assert actual.marker.pattern.shape != looked.marker.pattern.shape


def test_what_is_far_away_stands_in_one_bar_at_either_end():
    figure = offset_bars({-300: 1, -6: 2, 1: 4}, {0: 1, 7: 3}, dark=True)
    words, special = figure.data
    names = ["≤-5", "-4", "-3", "-2", "-1", "0", "+1", "+2", "+3", "+4", "≥5"]
    assert list(words.x) == list(special.x) == names and figure.layout.barmode == "stack"
    assert list(words.y) == [3, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]
    assert list(special.y) == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3]
    assert "+1: 4" in description(figure)
    (alone,) = offset_bars({2: 5}, {}).data
    assert (list(alone.x), list(alone.y)) == (["0", "+1", "+2"], [0, 0, 5])
