"""Scores of texts by pseudo-likelihood, as figures."""

from bert_tf.plots.interventions.ablation import ranked_bars

_UNIT = "log-probability, nats"
_MOST = 40  # pairs drawn by name


def token_bars(result, dark=False):
    """The log-probability of every token of a ``PseudoLikelihood``."""
    table = result.to_frame()
    return ranked_bars(list(table["token"]), list(table["log_probability"]), _UNIT, dark)


def pair_token_bars(result, dark=False):
    """The log-probability of every token of a ``MinimalPair``, of the first text, then of the second."""
    table = result.to_frame()
    numbers = table["text"].map({"good": 1, "bad": 2})
    names = [f"{token} ({number})" for token, number in zip(table["token"], numbers)]
    return ranked_bars(names, list(table["log_probability"]), _UNIT, dark)


def margin_bars(result, dark=False):
    """How much likelier the first text of each pair of ``MinimalPairs`` is."""
    table = result.to_frame().head(_MOST)
    names = [f"{name}: {text:.40}" for name, text in zip(table["row"], table["good"])]
    return ranked_bars(names, list(table["margin"]), "how much likelier the first is, nats", dark)
