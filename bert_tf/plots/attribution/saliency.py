"""What each word of a text does to an answer, as bars."""

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.theme import escape

_LONGEST_LIST = 15


def word_bars(saliency, dark=False):
    """The strongest words and their scores, positive ones for the answer.

    Args:
        saliency: a ``Saliency``. dark: for a dark page.
    """
    strongest = sorted(saliency.words, key=lambda one: -abs(one.score))[:_LONGEST_LIST]
    quantity = "log-odds" if saliency.log_odds is not None else "log-probability"
    unit = "value" if saliency.target.is_regression else f"{quantity} of {escape(saliency.target.label)}, nats"
    return ranked_bars([one.word.text for one in strongest], [one.score for one in strongest], unit, dark)
