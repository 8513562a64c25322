"""Whether the layers of two models hold the same: linear centred kernel alignment.

Dimension legend: L layers, W words, H hidden. Pure NumPy. Source: Kornblith et al. 2019, "Similarity of
Neural Network Representations Revisited"; without the bias of small samples, Nguyen et al. 2021, "Do Wide and
Deep Networks Learn the Same Things?", section 2.
"""

import numpy as np

from bert_tf.explain.errors import InputError, NotComparable, report
from bert_tf.explain.vectors import word_vectors

#: Words that are enough: every pair of them is a number, for every layer of both models.
ENOUGH_WORDS = 600


def linear_cka(states_a, states_b, debiased=True):
    """CKA of every layer of one model with every layer of another, on the same W words.

    Args:
        states_a: float [L_a, W, H_a]. states_b: float [L_b, W, H_b].
        debiased: use the unbiased estimate (Song et al. 2012), which needs 4 words and may fall below 0; the
            plain one calls any two layers alike as soon as H is larger than W.
    Returns:
        float64 [L_a, L_b]; 1 the same up to rotation and scale, 0 nothing in common. NaN where a layer does
        not tell the words apart.
    Raises:
        InputError: not the same words, or too few.
    """
    words = states_a.shape[1]
    if words != states_b.shape[1]:
        raise InputError(
            f"Both models' layers must be of the same words, not of {words} and {states_b.shape[1]}."
        )
    least = 4 if debiased else 2
    if words < least:
        raise InputError(f"CKA needs at least {least} words, not {words}: use a longer text or several.")
    grams_a, grams_b = (
        np.stack([_gram(layer, debiased) for layer in states]) for states in (states_a, states_b)
    )
    flat_a, flat_b = (grams.reshape(len(grams), -1) for grams in (grams_a, grams_b))
    inner = _inner(flat_a, flat_b, grams_a, grams_b, debiased)
    own_a, own_b = (_own(grams, debiased) for grams in (grams_a, grams_b))
    norms = np.sqrt(np.maximum(np.outer(own_a, own_b), 0))
    return np.divide(inner, norms, out=np.full(inner.shape, np.nan), where=norms > 0)


def layer_similarity(traces_a, traces_b, debiased=True):
    """`linear_cka` between all layers of two models, on the words of some texts.

    A word is the mean of its pieces, so the models may cut words differently.

    Args:
        traces_a, traces_b: `Trace`s with hidden states of the same texts by either model, or one `Trace`
            each.
        debiased: as in `linear_cka`.
    Returns:
        float64 [L_a + 1, L_b + 1], state 0 the embeddings.
    Raises:
        NotComparable: the texts differ. InputError: no hidden states, or too few words.
    """
    traces_a, traces_b = ([one] if hasattr(one, "tokens") else list(one) for one in (traces_a, traces_b))
    texts_a, texts_b = ([(one.text_a, one.text_b) for one in traces] for traces in (traces_a, traces_b))
    if texts_a != texts_b or not texts_a:
        raise NotComparable("The traces are of different texts: trace the same texts with both models.")
    vectors = ([], [])
    for pair in zip(traces_a, traces_b):
        words = [{(word.source, word.start, word.end): word for word in trace.words()} for trace in pair]
        # A text cut off earlier by one model has fewer words there.
        common = [place for place in words[0] if place in words[1]]
        for states, trace, spans in zip(vectors, pair, words):
            if common:
                states.append(word_vectors(trace, [spans[place] for place in common]))
    if not vectors[0]:
        raise NotComparable("The two models have no word of these texts in common.")
    return linear_cka(*(np.concatenate(states, axis=1) for states in vectors), debiased)


def traces_of(readers, texts, enough=ENOUGH_WORDS, progress=None):
    """Traces of texts by several models, for `layer_similarity`; no more texts are read than give enough words.

    Args:
        readers: a function (text_a, text_b or None) -> `Trace` with hidden states for each model.
        texts: pairs (text_a, text_b or None). enough: words, as the first model counts them, after which reading ends.
        progress: callable(done, total) in texts; returning False cancels.
    Returns:
        A list of `Trace`s for each model.
    Raises:
        Cancelled: by `progress`.
    """
    words, traces = 0, [[] for _ in readers]
    for done, (text_a, text_b) in enumerate(texts, start=1):
        for read, kept in zip(readers, traces):
            kept.append(read(text_a, text_b))
        words += len(traces[0][-1].words())
        report(progress, done, len(texts))
        if words >= enough:
            break
    return traces


def _gram(layer, debiased):
    """The inner products of the words' vectors [W, W]: centred, or with the diagonal empty for the unbiased
    estimate."""
    layer = np.asarray(layer, np.float64)
    layer = layer - layer.mean(axis=0)
    gram = layer @ layer.T
    if debiased:
        np.fill_diagonal(gram, 0)
    return gram


def _hsic(product, sums_a, sums_b, both, words):
    """Song et al. 2012, equation 5, less a factor that cancels in CKA."""
    return product + sums_a * sums_b / ((words - 1) * (words - 2)) - 2 * both / (words - 2)


def _inner(flat_a, flat_b, grams_a, grams_b, debiased):
    product = flat_a @ flat_b.T
    if not debiased:
        return product
    rows_a, rows_b = grams_a.sum(axis=2), grams_b.sum(axis=2)
    return _hsic(
        product, rows_a.sum(axis=1)[:, None], rows_b.sum(axis=1), rows_a @ rows_b.T, grams_a.shape[1]
    )


def _own(grams, debiased):
    return np.array(
        [
            _inner(gram.reshape(1, -1), gram.reshape(1, -1), gram[None], gram[None], debiased)[0, 0]
            for gram in grams
        ]
    )
