"""Ablation against models whose weights were really changed, and against the steps done by hand."""

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError, NothingToPredict
from bert_tf.explain import jensen_shannon
from bert_tf.explain.interventions.ablation import (
    ablate,
    ablation_or_sweep,
    clean_run,
    every_feed_forward,
    every_head,
    every_layer,
    every_token,
    sweep,
)
from bert_tf.explain.interventions.ablation_effects import Ablation
from bert_tf.models import build_pretraining_model, named_variables, view
from tests.layers.test_causal import APART, LEFT, make_reader


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the [MASK] sat on the [MASK]", "it ran")


def _copy(bert, change):
    """A copy of the model with some of its weights changed: `change(name, array) -> array`."""
    copy = build_pretraining_model(bert.config)
    for name, variable in named_variables(copy).items():
        variable.assign(change(name, np.array(named_variables(bert.model)[name])))
    return copy


def _answers(model, trace):
    """(MLM probabilities at the masks [P, V], P(IsNext)) of a Keras model."""
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
        "mask_positions": np.array([trace.masks]),
    }
    actual = view(model, ("mlm_logits", "nsp_logits"))(batch)
    scores = [np.exp(np.asarray(actual[name], np.float64)[0]) for name in ("mlm_logits", "nsp_logits")]
    return scores[0] / scores[0].sum(axis=1, keepdims=True), scores[1][0] / scores[1].sum()


def _agrees(effect, model, trace):
    probabilities, is_next = _answers(model, trace)
    for row, mask in enumerate(effect.after):
        order = np.argsort(-probabilities[row])[: len(mask.predictions)]
        assert [p.id for p in mask.predictions] == order.tolist()
        assert [p.probability for p in mask.predictions] == pytest.approx(probabilities[row][order], rel=1e-3)
    assert effect.nsp_after.is_next == pytest.approx(is_next, abs=1e-4)


def test_heads_off_are_heads_whose_projection_is_zero(tiny_bert, trace):
    off = ((0, 1), (1, 0), (1, 3))

    def change(name, array):
        for layer, head in off:
            if name == f"bert.encoder.layer.{layer}.attention.output.dense.weight":
                array[head * 8 : (head + 1) * 8] = 0
        return array

    _agrees(ablate(tiny_bert, trace, Ablation(heads=off)), _copy(tiny_bert, change), trace)


def test_a_feed_forward_block_off_is_one_whose_projection_is_zero(tiny_bert, trace):
    def change(name, array):
        return array * (0 if name.startswith("bert.encoder.layer.0.output.dense") else 1)

    _agrees(ablate(tiny_bert, trace, Ablation(feed_forward=(0,))), _copy(tiny_bert, change), trace)


def test_a_layer_off_is_a_model_without_it(tiny_bert, trace):
    effect = ablate(tiny_bert, trace, Ablation(layers=(0,)))
    layers = tiny_bert.model.bert_layers
    state = layers["layer_1"](trace.hidden_states[:1], np.zeros((1, 1, 1, 1), np.float32))
    logits = np.asarray(layers["mlm"](state, layers["embeddings"].token_table))[0, trace.masks[0]]
    best = np.argsort(-logits)[:5]
    assert [p.id for p in effect.after[0].predictions] == best.tolist()


def test_a_token_nobody_attends_to_is_like_padding_in_its_place(tiny_bert, trace):
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
        "mask_positions": np.array([trace.masks]),
    }
    batch["padding_mask"][0, 3] = 0
    logits = np.asarray(view(tiny_bert.model, ("mlm_logits",))(batch)["mlm_logits"])[0]
    effect = ablate(tiny_bert, trace, Ablation(tokens=(3,)), attentions=True)
    for row, mask in enumerate(effect.after):
        assert [p.id for p in mask.predictions] == np.argsort(-logits[row])[:5].tolist()
    assert not effect.attentions[..., 3].any()
    np.testing.assert_allclose(effect.attentions.sum(axis=-1), 1, atol=1e-5)


def test_a_link_is_cut_only_where_it_is_said(tiny_bert, trace):
    effect = ablate(tiny_bert, trace, Ablation(links=((2, 4),), attention_layers=(1,)), attentions=True)
    np.testing.assert_allclose(effect.attentions[0], trace.attentions[0], atol=1e-5)
    cut = trace.attentions[1].copy()
    cut[:, 2, 4] = 0
    np.testing.assert_allclose(effect.attentions[1], cut / cut.sum(axis=-1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("name, alone", [(LEFT, [(slice(None), 0)]), (APART, [(slice(2), 0), (slice(2, 4), -1)])])
def test_a_token_that_its_mask_leaves_nothing_attends_to_nothing(name, alone):
    reader = make_reader(name)
    read = reader.trace("the cat [MASK] on")
    ends = tuple({position % read.length for _, position in alone})
    for position in ends:
        effect = ablate(reader, read, Ablation(tokens=(position,)), attentions=True, attention_shifts=True)
        expected = read.attentions[0].copy()
        expected[..., position] = 0
        sums = expected.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(effect.attentions[0], expected / np.where(sums, sums, 1), atol=1e-5)
        for heads, lonely in alone:
            assert (sums[heads, lonely] == 0).all() == (position == lonely % read.length)
        lost = np.maximum(read.attentions[0] - effect.attentions[0], 0).sum(axis=-1).mean(axis=-1)
        np.testing.assert_allclose(effect.attention_shifts[0], lost, atol=1e-5)
    swept = sweep(reader, read, every_token(read))
    for position in range(read.length):
        effect = ablate(reader, read, Ablation(tokens=(position,)))
        assert effect.log_probability_changes == pytest.approx(swept.log_probability_changes[position], abs=1e-4)
    link = Ablation(links=((0, 0),), attention_layers=(1,))
    assert ablate(reader, read, link, attentions=True).attentions[1, 0, 0].tolist() == [0] * read.length


def test_nothing_off_changes_nothing(tiny_bert, trace):
    effect = ablate(tiny_bert, trace, Ablation(), attentions=True)
    assert effect.before == effect.after and effect.nsp_before == effect.nsp_after
    assert not effect.log_probability_changes.any() and effect.divergences == pytest.approx([0, 0], abs=1e-6)
    np.testing.assert_allclose(effect.attentions, trace.attentions, atol=1e-5)


@pytest.mark.parametrize(
    "ablation, still",
    [
        (Ablation(), (0, 1)),
        (Ablation(heads=((0, 1), (1, 2))), (0,)),
        (Ablation(layers=(0,)), (0,)),
        (Ablation(feed_forward=(1,)), (0, 1)),
        (Ablation(tokens=(3,)), ()),
        (Ablation(links=((2, 4),), attention_layers=(1,)), (0,)),
    ],
)
def test_shifts_are_how_far_the_map_of_each_head_has_moved(tiny_bert, trace, ablation, still):
    effect = ablate(tiny_bert, trace, ablation, attentions=True, attention_shifts=True)
    moved = np.abs(effect.attentions - trace.attentions).sum(axis=-1).mean(axis=-1) / 2
    np.testing.assert_allclose(effect.attention_shifts, moved, atol=1e-5)
    for layer in range(2):
        assert effect.attention_shifts[layer].any() == (layer not in still)


def test_the_pass_with_everything_on_is_made_once_for_all(tiny_bert, trace, monkeypatch):
    off = Ablation(heads=((1, 0),), tokens=(3,))
    alone = ablate(tiny_bert, trace, off, attention_shifts=True)
    clean = clean_run(tiny_bert, trace)
    monkeypatch.setattr(tiny_bert.hooked(), "states", lambda *_: pytest.fail("it is made again"))
    again = ablate(tiny_bert, trace, off, attention_shifts=True, clean=clean)
    assert again.before == alone.before and again.after == alone.after and again.nsp_after == alone.nsp_after
    np.testing.assert_array_equal(again.attention_shifts, alone.attention_shifts)


def test_changes_and_divergences_are_between_the_two_distributions(tiny_bert, trace):
    size = tiny_bert.tokenizer.vocab_size
    effect = ablate(tiny_bert, trace, Ablation(heads=((0, 0), (0, 2))), top_k=size)
    for row, (before, after) in enumerate(zip(effect.before, effect.after)):
        p, q = np.zeros((2, size))
        for side, mask in ((p, before), (q, after)):
            side[[one.id for one in mask.predictions]] = [one.probability for one in mask.predictions]
        best = before.predictions[0].id
        assert effect.log_probability_changes[row] == pytest.approx(np.log(q[best] / p[best]), abs=1e-3)
        assert effect.divergences[row] == pytest.approx(jensen_shannon(p, q), abs=1e-4)


def test_a_sweep_is_each_ablation_alone(tiny_bert, trace, monkeypatch):
    config, seen = tiny_bert.config, []
    ablations = (
        Ablation(),
        *every_layer(config),
        *every_token(trace),
        *every_head(config)[::-1],
        *every_feed_forward(config),
    )
    monkeypatch.setattr("bert_tf.explain.interventions.ablation.TOKENS_PER_BATCH", 5 * trace.length)
    actual = sweep(tiny_bert, trace, ablations, progress=lambda *at: seen.append(at))
    assert len(ablations) == 1 + 2 + trace.length + 8 + 2 and seen[-1] == (len(ablations),) * 2
    for place, ablation in enumerate(ablations):
        alone = ablate(tiny_bert, trace, ablation)
        np.testing.assert_allclose(actual.log_probability_changes[place], alone.log_probability_changes, atol=1e-4)
        np.testing.assert_allclose(actual.divergences[place], alone.divergences, atol=1e-5)
        assert actual.nsp_changes[place] == pytest.approx(alone.nsp_after.is_next - alone.nsp_before.is_next, abs=1e-5)
    effects = actual.divergences.mean(axis=1)[actual.ranked()]
    assert (np.diff(effects) <= 0).all()


def test_a_sweep_of_tokens_computes_no_scores_to_learn_the_links(tiny_bert, trace, monkeypatch):
    asked, values = set(), tiny_bert.steps().values

    def counted(layer, x, points, *rest):
        asked.update(points)
        return values(layer, x, points, *rest)

    monkeypatch.setattr(tiny_bert.steps(), "values", counted)
    assert len(sweep(tiny_bert, trace, every_token(trace)).ablations) == trace.length
    assert asked == {"resid_post"}


def test_without_a_mask_the_next_sentence_answer_ranks(tiny_bert):
    actual = sweep(tiny_bert, tiny_bert.trace("the cat sat", "it ran"), every_head(tiny_bert.config))
    assert actual.log_probability_changes.shape == (8, 0)
    assert (np.diff(np.abs(actual.nsp_changes)[actual.ranked()]) <= 0).all()


def test_what_the_answer_loses_is_what_it_had_less_what_it_has(tiny_bert, trace):
    parts = every_layer(tiny_bert.config)
    actual = sweep(tiny_bert, trace, parts)
    effects = [ablate(tiny_bert, trace, part, top_k=1000) for part in parts]
    wanted = np.zeros(len(parts))
    for mask, place in enumerate(trace.masks):
        had = {one.id: one.probability for one in effects[0].before[mask].predictions}
        best = max(had, key=had.get)
        for part, effect in enumerate(effects):
            has = next(one.probability for one in effect.after[mask].predictions if one.id == best)
            wanted[part] += np.log(had[best] / has) / len(trace.masks)
    np.testing.assert_allclose(actual.score_drop(trace, "masks"), wanted, atol=1e-4)
    judged = set()
    for pair in (("the cat sat", "it ran"), ("it ran", "the cat sat"), ("a dog", "big mat"), ("London", "bank money")):
        read = tiny_bert.trace(*pair)
        score_drop = sweep(tiny_bert, read, parts).score_drop(read, "next")
        likelier = max(("is_next", "not_next"), key=lambda name: getattr(read.nsp, name))
        judged.add(likelier)
        after = [getattr(ablate(tiny_bert, read, part).nsp_after, likelier) for part in parts]
        np.testing.assert_allclose(score_drop, getattr(read.nsp, likelier) - np.array(after), atol=1e-5)
    assert len(judged) == 2
    with pytest.raises(InputError, match="no answer 'class'"):
        actual.score_drop(trace, "class")


def test_a_sweep_can_be_cancelled(tiny_bert, trace):
    with pytest.raises(Cancelled):
        sweep(tiny_bert, trace, every_head(tiny_bert.config), progress=lambda done, total: done < 3)


@pytest.mark.parametrize(
    "ablation, sentence",
    [
        (Ablation(heads=((0, 4),)), "no head 4: they are numbered 0 to 3"),
        (Ablation(heads=((2, 0),)), "no layer 2"),
        (Ablation(layers=(-1,)), "no layer -1"),
        (Ablation(links=((0, 99),)), "no token 99"),
        (Ablation(tokens=tuple(range(11))), "nothing left to attend to"),
    ],
)
def test_parts_that_are_not_there_are_refused(tiny_bert, trace, ablation, sentence):
    with pytest.raises(InputError, match=sentence):
        ablate(tiny_bert, trace, ablation)


@pytest.mark.parametrize(
    "parts, sentence",
    [
        ({"layers": 0}, r"layers of an ablation must be numbers as in layers=\(3, 11\), not 0"),
        ({"heads": (0, 1)}, r"heads=\(\(3, 11\),\), not \(0, 1\)"),
        ({"links": [(0, 1, 2)]}, "links"),
        ({"tokens": [1.5]}, "tokens"),
        ({"feed_forward": "3"}, "feed_forward"),
        ({"attention_layers": 3}, "attention_layers"),
    ],
)
def test_parts_that_are_no_numbers_are_refused(parts, sentence):
    with pytest.raises(InputError, match=sentence):
        Ablation(**parts)


def test_lists_and_arrays_are_parts_too():
    ablation = Ablation(heads=[[0, 1]], layers=np.array([1]), links=np.array([[0, 2]]))
    assert ablation == Ablation(heads=((0, 1),), layers=(1,), links=((0, 2),)) and hash(ablation)


def test_there_must_be_an_answer_to_change(tiny_bert):
    with pytest.raises(NothingToPredict):
        ablate(tiny_bert, tiny_bert.trace("the cat"), Ablation(layers=(0,)))


def test_an_unknown_kind_of_parts(tiny_bert):
    with pytest.raises(InputError, match="sweep_over must be one of heads, layers, .*, not 'head'"):
        ablation_or_sweep(tiny_bert, tiny_bert.trace("the [MASK]"), sweep_over="head")
