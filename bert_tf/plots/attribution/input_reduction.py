"""What becomes of an answer while words of the input go."""

from bert_tf.plots.representations.vectors import curves
from bert_tf.plots.theme import escape


def reduction_curve(words, probabilities, label, dark=False):
    """The answer's probability, in the whole input and without more and more of its words.

    Args:
        words: W strings, in the order in which they went. probabilities: float [W + 1], that of the whole input first.
        label: the answer. dark: for a dark page.
    """
    names = ["all words", *(f"{number} {escape(word)}" for number, word in enumerate(words, 1))]
    figure = curves({label: probabilities}, names, "word that goes", "probability", dark, 340, percent=True)
    # An answer is often the likeliest with a few percent: the axis ends a little above the greatest.
    return figure.update_yaxes(range=[0, min(1.04, 1.25 * max(probabilities))], tickformat="~%")
