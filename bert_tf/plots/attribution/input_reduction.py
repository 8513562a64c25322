"""What becomes of an answer while words of the input go."""

import numpy as np

from bert_tf.plots.representations.vectors import curves
from bert_tf.plots.theme import escape


def reduction_curve(reduction, dark=False):
    """The answer's probability, in the whole input and without more and more of its words.

    Args:
        reduction: an ``InputReduction``. dark: for a dark page.
    """
    removed = reduction.removed
    probabilities = np.exp([reduction.log_probability, *(one.log_probability for one in removed)])
    names = ["all words", *(f"{number} {escape(one.word.text)}" for number, one in enumerate(removed, 1))]
    figure = curves(
        {reduction.target.label: probabilities}, names, "word that goes", "probability", dark, 340, percent=True
    )
    # An answer is often the likeliest with a few percent: the axis ends a little above the greatest.
    return figure.update_yaxes(range=[0, min(1.04, 1.25 * max(probabilities))], tickformat="~%")
