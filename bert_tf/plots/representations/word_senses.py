"""One word in many sentences as figures: points, cosines, and its senses layer by layer."""

from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.representations.vectors import component_titles, curves, points, similarity_map


def word_points(senses, dark=False):
    """The word in each sentence as a point, of a ``WordSenses``."""
    groups = senses.senses if any(senses.senses) else None
    ratios = senses.explained_variance_ratio
    return points(senses.coordinates, senses.sentences, groups, component_titles(ratios, 3), dark)


def sense_nearest(separation, dark=False):
    """How often the nearest other occurrence has the same sense, layer by layer, of a ``SenseSeparation``."""
    shown = {"same sense nearest": separation.nearest}
    names = state_names(len(separation.nearest))
    return curves(shown, names, "after layer", "nearest of the same sense", dark, percent=True)


def sense_cosines(separation, dark=False):
    """Mean cosines within and between senses, layer by layer, of a ``SenseSeparation``."""
    shown = {"same sense": separation.within, "other sense": separation.between}
    return curves(shown, state_names(len(separation.nearest)), "after layer", "mean cosine", dark)


def sense_curves(senses, dark=False):
    """All curves of the senses of a ``WordSenses`` in one figure."""
    apart = senses.separation
    series = {
        "nearest has the same sense": apart.nearest,
        "cosine, same sense": apart.within,
        "cosine, other sense": apart.between,
    }
    return curves(series, state_names(len(apart.nearest)), "after layer", "share, and mean cosine", dark, 420)


def sense_map(senses, dark=False):
    """Cosines of a word's occurrences, those of one sense together, of a ``WordSenses``."""
    return similarity_map(senses.similarity, dark)
