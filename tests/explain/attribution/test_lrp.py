"""Layer-wise relevance: conservation for every kind of answer and model, and a pass by hand with everything held."""

import functools

import numpy as np
import pytest
from scipy.special import erf, expit, logsumexp, xlogy

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import class_target, mask_target, next_sentence_target, replaced_target, sentence_order_target
from bert_tf.explain.attribution.lrp import layerwise_relevance
from bert_tf.explain.models.architecture import layer_activations_from_state
from bert_tf.inference.batching import batched_answers
from bert_tf.inference.bert import Bert
from tests.conftest import make_bert
from tests.explain.interventions.test_contributions import family
from tests.explain.test_class_target import made
from tests.layers.test_causal import APART, LEFT

PAIR = ("the cat [MASK] on the mat", "it ran")
CLASSES = {
    "class of [CLS]": {"pooling": "cls"},
    "class of the mean": {"pooling": "mean"},
    "class by attention": {"pooling": "attention"},
    "class of the highest": {"pooling": "max"},
    "of several": {"multi_label": True},
    "value": {"labels": (), "regression": True},
}
EVERY = (
    "mask",
    "another word",
    "next",
    "not next",
    "roberta",
    "distilbert",
    "albert",
    LEFT,
    APART,
    "swapped",
    "replaced",
    "original",
    *CLASSES,
)


def plain():
    return make_bert(seed=1, layers=3, hidden=24, heads=2, lower_case=True)


def classifier(name):
    bert, random = made(**CLASSES[name]), np.random.default_rng(0)
    for variable in [*bert.model.trainable_variables, *bert.task.network.head.trainable_variables]:
        if variable.name in ("bias", "beta"):
            variable.assign(random.normal(0, 0.1, variable.shape).astype(np.float32))
    return bert


once = functools.cache(lambda make, *name: make(*name))  # what one test has compiled the others need not


def asked(name):
    """(a `Bert`, a trace, a target) of one of EVERY."""
    if name in CLASSES:
        bert = once(classifier, name)
        trace = bert.trace("it was a good film")
        return bert, trace, class_target(bert, trace, None if name == "value" else "good")
    if name in ("replaced", "original"):
        bert, trace = once(family, "electra-discriminator")
        return bert, trace, replaced_target(bert, trace, 2, name == "replaced")
    if name == "swapped":
        bert, _ = once(family, "albert")
        trace = bert.trace("the license", "of the work")
        return bert, trace, sentence_order_target(bert, trace, False)
    if name in ("mask", "another word", "next", "not next"):
        bert = once(plain)
        trace = bert.trace(*PAIR)
        if name in ("next", "not next"):
            return bert, trace, next_sentence_target(bert, trace, name == "next")
        return bert, trace, mask_target(bert, trace, *(() if name == "mask" else (2, "dog")))
    bert, trace = once(family, name)
    return bert, trace, mask_target(bert, trace)


@pytest.mark.parametrize("name", EVERY)
def test_nothing_of_the_log_odds_gets_lost(name):
    bert, trace, target = asked(name)
    actual = layerwise_relevance(bert, trace, target)
    ((_, answers),) = batched_answers(bert, trace.token_ids[None], trace.segments, target)
    answers = answers[0].astype(np.float64)
    own, others, spread = answers[target.id], np.delete(answers, target.id), 0.0
    odds = own if target.is_regression else own - np.log1p(-np.exp(own))
    if not (target.is_regression or target.is_multi_label):
        shares = np.exp(others - logsumexp(others))
        spread = xlogy(shares, shares).sum()
    assert actual.log_probability == pytest.approx(own, abs=1e-5) and actual.log_odds == pytest.approx(odds, abs=1e-4)
    assert actual.rest["spread"] == pytest.approx(spread, abs=1e-5)
    assert actual.scores.sum() + sum(actual.rest.values()) == pytest.approx(odds, abs=1e-4)
    assert np.abs(actual.scores).max() > 1e-4 and abs(actual.rest["biases"]) > 1e-4
    assert [one.score for one in actual.words] == pytest.approx(
        [actual.scores[list(one.word.positions)].sum() for one in actual.words]
    )


def held(bert, trace, target):
    """A function of token vectors [T, E], whether places and biases are there: the log-odds without the others'
    spread, with all weights of attention, deviations and gates as they are in the trace. By hand, in float64."""
    parts, weight = bert.model.bert_layers, lambda one: np.asarray(one, np.float64)
    vectors = bert.hooked().token_vectors(trace.token_ids).numpy().astype(np.float64)
    table = parts["embeddings"]
    places = weight(table.position_table)[: trace.length] + weight(table.segment_table)[trace.segments]
    deviations, gates, spreads = [], [], []

    def run(vectors, with_places=1.0, with_biases=1.0, first=False):
        kept = iter(deviations), iter(gates), iter(spreads)

        def hold(which, make):
            if first:
                (deviations, gates, spreads)[which].append(make())
                return (deviations, gates, spreads)[which][-1]
            return next(kept[which])

        def dense(layer, x):
            return x @ weight(layer.kernel) + with_biases * weight(layer.bias)

        def norm(layer, x):
            deviation = hold(0, lambda: np.sqrt(x.var(axis=-1, keepdims=True) + layer.epsilon))
            centred = x - x.mean(axis=-1, keepdims=True)
            return centred / deviation * weight(layer.gamma) + with_biases * weight(layer.beta)

        def gated(x, gate):
            return x * hold(1, lambda: gate(x))

        def gelu(x):
            return (1 + erf(x / np.sqrt(2))) / 2

        x = norm(table.norm, vectors + with_places * places)
        for index in range(bert.config.num_hidden_layers):
            layer, maps = parts[f"layer_{index}"], passed[index]["attentions"].astype(np.float64)
            size, values = layer.attention.head_size, dense(layer.attention.value, x)
            mixed = [one @ values[:, head * size : (head + 1) * size] for head, one in enumerate(maps)]
            x = norm(layer.attention_norm, x + dense(layer.attention.output_dense, np.concatenate(mixed, axis=-1)))
            wide = gated(dense(layer.feed_forward.intermediate, x), gelu)
            x = norm(layer.feed_forward_norm, x + dense(layer.feed_forward.output_dense, wide))
        if target.head == "nsp":
            logits = dense(parts["nsp"].dense, gated(dense(parts["pooler"].dense, x[0]), lambda x: np.tanh(x) / x))
        else:
            inside = gated(dense(parts["mlm"].transform, x[target.position]), gelu)
            logits = norm(parts["mlm"].norm, inside) @ weight(table.token_table).T
            logits = logits + with_biases * weight(parts["mlm"].bias)
        others = np.delete(logits, target.id)
        return logits[target.id] - hold(2, lambda: np.exp(others - logsumexp(others))) @ others

    state, passed = bert.hooked().embed(trace.token_ids[None], trace.segments[None]).numpy()[0], []
    for index in range(bert.config.num_hidden_layers):
        passed.append(layer_activations_from_state(bert, state, index))
        state = passed[-1]["feed_forward_norm"]
    run(vectors, first=True)
    return run, vectors


@pytest.mark.parametrize("name", ["another word", "next"])
def test_a_token_s_relevance_is_what_is_lost_without_it_where_all_else_is_held(name):
    bert, trace, target = asked(name)
    actual, (run, vectors) = layerwise_relevance(bert, trace, target), held(bert, trace, target)
    whole = run(vectors)
    assert whole + actual.rest["spread"] == pytest.approx(actual.log_odds, abs=1e-4)
    lost = [whole - run(vectors * (np.arange(trace.length) != place)[:, None]) for place in range(trace.length)]
    np.testing.assert_allclose(actual.scores, lost, atol=1e-4)
    assert actual.rest["places"] == pytest.approx(whole - run(vectors, with_places=0), abs=1e-4)
    assert actual.rest["biases"] == pytest.approx(whole - run(vectors, with_biases=0), abs=1e-4)


def test_what_a_reader_has_not_read_has_no_relevance():
    bert, trace, target = asked(LEFT)
    actual = layerwise_relevance(bert, trace, target)
    assert not actual.scores[target.position :].any() and actual.scores[: target.position].all()


def test_where_an_answer_is_certain_there_is_still_something_to_share_out():
    bert, trace, target = asked("next")
    before, head = layerwise_relevance(bert, trace, target), bert.model.bert_layers["nsp"].dense
    kept = np.array(head.bias)
    head.bias.assign(kept + np.array([30, 0], np.float32))
    try:
        changed = Bert(bert.config, bert.tokenizer, bert.model)  # a runtime reads the weights only once
        after = layerwise_relevance(changed, trace, target)
    finally:
        head.bias.assign(kept)
    np.testing.assert_allclose(after.scores, before.scores, atol=1e-5)
    assert after.log_probability == 0 and expit(after.log_odds) == pytest.approx(1)
    assert after.rest["biases"] == pytest.approx(before.rest["biases"] + 30, abs=1e-4)


def test_it_says_how_far_it_is_and_what_it_cannot_do():
    messages, (bert, trace, target) = [], asked("mask")
    layerwise_relevance(bert, trace, target, lambda *steps: messages.append(steps))
    assert messages == [(done, 6) for done in range(6)]
    with pytest.raises(Cancelled):
        layerwise_relevance(bert, trace, target, lambda done, total: done < 4)
    bert = made(labels=("good",))
    trace = bert.trace("it was a good film")
    with pytest.raises(InputError, match="good is the only class, and always certain"):
        layerwise_relevance(bert, trace, class_target(bert, trace, "good"))
