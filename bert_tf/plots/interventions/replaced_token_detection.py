"""What a discriminator says of every token, as a figure."""

from bert_tf.plots.interventions.ablation import replaced_bars


def scores(result, dark=False):
    """The score of every token of a ``ReplacedTokenResult``; those that were really replaced are orange."""
    table = result.to_frame()
    return replaced_bars(list(table["token"]), list(table["score"]), list(table["replaced"]), dark)
