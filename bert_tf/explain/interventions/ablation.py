"""What happens without a part: heads, whole layers, feed-forward blocks, attention to a token switched off.

Dimension legend: A ablations, L layers, N heads, T tokens, P masks, V vocabulary, H hidden, B batch, K classes. After
Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (heads set to zero), and Geva et al. 2023
(attention blocked).
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option, parse_head, underscored
from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import class_prediction, classifier_settings
from bert_tf.inference.answer import check_question
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.predictions import check_top_k, mask_predictions
from bert_tf.inference.trace import NextSentence, SentenceOrder
from bert_tf.results import Result, frame, frame_text

# Masks whose distributions over the vocabulary are held at once in a sweep.
MASKS_PER_BATCH = 256


@dataclass(frozen=True)
class Ablation:
    """What to switch off; everything is counted from 0. Parts may be combined.

    Attributes:
        heads: (layer, head) pairs that add nothing. The projection's bias, no head's own, stays.
        layers: layers that hand on what they were given.
        feed_forward: layers whose feed-forward block adds nothing; its residual and norm stay.
        tokens: positions no token attends to; the others share the attention.
        links: (from, to) pairs of positions: `from` does not attend to `to`.
        attention_layers: the layers where `tokens` and `links` hold; None for all.
    """

    heads: tuple = ()
    layers: tuple = ()
    feed_forward: tuple = ()
    tokens: tuple = ()
    links: tuple = ()
    attention_layers: Optional[tuple] = None

    @property
    def name(self):
        """What is switched off, in words: "layer 3, head 11"."""
        parts = [
            *(f"layer {layer}, head {head}" for layer, head in self.heads),
            *(f"layer {layer}" for layer in self.layers),
            *(f"layer {layer}, feed-forward" for layer in self.feed_forward),
            *(f"attention to token {position}" for position in self.tokens),
            *(f"attention from token {looking} to {position}" for looking, position in self.links),
        ]
        return " + ".join(parts) or "nothing"

    def first_layer(self, count):
        """The first of `count` layers that it touches; `count` if none."""
        touched = [*(layer for layer, _ in self.heads), *self.layers, *self.feed_forward]
        if self.tokens or self.links:
            touched += range(count) if self.attention_layers is None else self.attention_layers
        return min(touched, default=count)


@dataclass(frozen=True, eq=False)
class CleanRun:
    """A trace's input run with nothing switched off: what every ablation of it is compared with.

    Attributes:
        states: list of L + 1 hidden states, tensors float32 [1, T, H].
        answers: what the heads say of the last one; for `ablate` and `sweep`.
    """

    states: list
    answers: dict


@dataclass(frozen=True, eq=False)
class AblationEffect(Result, figures={"answers": "bert_tf.plots.interventions.ablation:ablation_effect"}):
    """The answers with and without a part.

    Attributes:
        tokens: T strings. ablation: the `Ablation`.
        before, after: tuples of P `MaskPrediction`.
        nsp_before, nsp_after: `NextSentence`, or None as in a trace.
        sop_before, sop_after: `SentenceOrder`, or None as in a trace.
        classes_before, classes_after: what a fine-tuned classifier says: dict from each class to its probability,
            or "value" to that of a regression; None for other models.
        replaced_before, replaced_after: float64 [T], each token's probability of having been put there in the place
            of another; None for models without a head for it.
        log_probability_changes: float64 [P], natural logarithm of what each mask's likeliest token before has gained in
            probability: negative if the part speaks for it.
        divergences: float64 [P], Jensen-Shannon divergence of the two distributions in bits.
        attentions: float32 [L, N, T, T] without the part, a layer switched off shown as it would look; None
            if not asked for.
        attention_shifts: float64 [L, N], share of its attention that each head turns elsewhere: total variation
            distance of the two maps, the mean over the tokens that look; None if not asked for.
    """

    tokens: tuple
    ablation: Ablation
    before: tuple
    after: tuple
    nsp_before: Optional[NextSentence]
    nsp_after: Optional[NextSentence]
    log_probability_changes: np.ndarray
    divergences: np.ndarray
    attentions: Optional[np.ndarray] = None
    attention_shifts: Optional[np.ndarray] = None
    sop_before: Optional[SentenceOrder] = None
    sop_after: Optional[SentenceOrder] = None
    classes_before: Optional[dict] = None
    classes_after: Optional[dict] = None
    replaced_before: Optional[np.ndarray] = None
    replaced_after: Optional[np.ndarray] = None

    def to_frame(self):
        """A row for each answer: its probability before and after, NaN where it is not among the predictions kept; then
        one for each head: the share of its attention that goes elsewhere."""
        rows = [*self._mask_rows()]
        for name, before, after in (
            ("is_next", self.nsp_before, self.nsp_after),
            ("in_order", self.sop_before, self.sop_after),
        ):
            if before is not None:
                rows.append((name, None, None, "", before[0], after[0]))
        for label, before in (self.classes_before or {}).items():
            rows.append(("class", None, None, label, before, self.classes_after[label]))
        if self.replaced_before is not None:
            for position, both in enumerate(zip(self.tokens, self.replaced_before, self.replaced_after)):
                rows.append(("replaced", position, None, *both))
        table = frame(dict(zip(("measure", "position", "layer", "answer", "before", "after"), zip(*rows))))
        table.insert(3, "head", None)
        table["change"] = table["after"] - table["before"]
        if self.attention_shifts is not None:
            table = self._with_shifts(table)
        return table.astype({"position": "Int64", "layer": "Int64", "head": "Int64", "before": float, "after": float})

    def _mask_rows(self):
        for before, after in zip(self.before, self.after):
            shares = [{one.token: one.probability for one in mask.predictions} for mask in (before, after)]
            for token in dict.fromkeys([*shares[0], *shares[1]]):
                yield ("mask", before.position, None, token, *(side.get(token, np.nan) for side in shares))

    def _with_shifts(self, table):
        import pandas

        layers, heads = self.attention_shifts.shape
        shifts = frame(
            {
                "measure": "attention_shift",
                "layer": np.repeat(range(layers), heads),
                "head": np.tile(range(heads), layers),
                "answer": "",
                "change": self.attention_shifts.ravel(),
            }
        )
        return pandas.concat([table, shifts], ignore_index=True)

    def to_text(self):
        """The answers, then the heads whose attention moves most."""
        table = self.to_frame()
        is_shift = table["measure"] == "attention_shift"
        lines = [frame_text(table[~is_shift][["measure", "position", "answer", "before", "after"]])]
        moved = table[is_shift & (table["change"] > 0)].sort_values("change", ascending=False, kind="stable")
        lines += [
            f"layer {layer}, head {head}: {share:.1%} of its attention goes elsewhere"
            for layer, head, share in moved[["layer", "head", "change"]].head(5).itertuples(index=False)
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class ScoreDrops(
    Result,
    figures={
        "strongest": "bert_tf.plots.interventions.ablation:strongest_drops",
        "map": "bert_tf.plots.interventions.ablation:score_drop_map",
    },
):
    """What one answer loses without each of many parts.

    Attributes:
        tokens: T strings. answer: which one, as `AblationSweep.score_drop` takes it. unit: the unit of the drops.
        ablations: the A `Ablation`s. score_drops: float64 [A], positive if the part speaks for the answer.
    """

    tokens: tuple
    answer: object
    unit: str
    ablations: tuple
    score_drops: np.ndarray

    def to_frame(self):
        """A row for each ablation, the strongest first."""
        order = np.argsort(-np.abs(self.score_drops), kind="stable")
        return frame({"part": [self.ablations[index].name for index in order], "score_drop": self.score_drops[order]})


@dataclass(frozen=True, eq=False)
class AblationSweep(Result, figures={"strongest": "bert_tf.plots.interventions.ablation:strongest_ablations"}):
    """The effect of many ablations, one at a time.

    Attributes:
        tokens: T strings. masks: P positions. ablations: the A `Ablation`s.
        token_ids: int64 [P], the token followed at each mask: the likeliest before.
        followed_tokens: the same as strings.
        log_probability_changes, divergences: float64 [A, P], as in `AblationEffect`.
        nsp_changes: float64 [A], change of P(IsNext); None if the trace has no pair or the model no such head.
        sop_changes: float64 [A], change of P(in order); None likewise.
        class_changes: float64 [A], natural logarithm of what the class that was likeliest before has gained in
            probability, or the change of a regression's value; None if the model does not classify.
        replaced_changes: float64 [A, T], change of each token's probability of being replaced; None if the model has
            no head for it.
    """

    tokens: tuple
    masks: tuple
    ablations: tuple
    token_ids: np.ndarray
    followed_tokens: tuple
    log_probability_changes: np.ndarray
    divergences: np.ndarray
    nsp_changes: Optional[np.ndarray]
    sop_changes: Optional[np.ndarray] = None
    class_changes: Optional[np.ndarray] = None
    replaced_changes: Optional[np.ndarray] = None

    def to_frame(self):
        """A row for each ablation, the strongest first; a column for each answer there is."""
        columns = {"part": [one.name for one in self.ablations]}
        if self.divergences.shape[1]:
            columns["log_probability_change"] = self.log_probability_changes.mean(axis=1)
            columns["divergence_bits"] = self.divergences.mean(axis=1)
        others = {
            "class_change": self.class_changes,
            "is_next_change": self.nsp_changes,
            "in_order_change": self.sop_changes,
            "replaced_change": None if self.replaced_changes is None else np.abs(self.replaced_changes).mean(axis=1),
        }
        columns |= {name: values for name, values in others.items() if values is not None}
        return frame(columns).iloc[self.ranked()].reset_index(drop=True)

    def ranked(self):
        """Indices of the ablations, the greatest effect first: on the masks (the mean divergence) if there
        are any, otherwise on the class, otherwise on the answer about the pair, otherwise on the tokens' scores (the
        mean over the tokens)."""
        effect = self.divergences.mean(axis=1) if self.divergences.shape[1] else None
        for changes in (self.class_changes, self.nsp_changes, self.sop_changes):
            effect = np.abs(changes) if effect is None and changes is not None else effect
        effect = np.abs(self.replaced_changes).mean(axis=1) if effect is None else effect
        return np.argsort(-effect, kind="stable")

    def score_drops(self, trace, answer, unit):
        """The `ScoreDrops` of one answer; trace and answer as of `score_drop`, `unit` says what they are counted in."""
        return ScoreDrops(self.tokens, answer, unit, self.ablations, self.score_drop(trace, answer))

    def score_drop(self, trace, answer):
        """How much an answer loses without each part: positive if the part speaks for it.

        Args:
            trace: the `Trace` that was swept.
            answer: "masks", the mean over the likeliest token at each mask; "class", the likeliest class or a
                regression's value; "next", the likelier verdict on the pair; or the position of a token, the likelier
                verdict on it of a discriminator.
        Returns:
            float64 [A]: nats of log-probability, of a verdict probability.
        Raises:
            InputError: there is no such answer.
        """
        changes, share = None, 1.0
        if answer == "masks" and self.divergences.shape[1]:
            changes = self.log_probability_changes.mean(axis=1)
        elif answer == "class":
            changes = self.class_changes
        elif answer == "next" and self.nsp_changes is not None:
            changes, share = self.nsp_changes, trace.nsp.is_next
        elif answer == "next" and self.sop_changes is not None:
            changes, share = self.sop_changes, trace.sop.in_order
        elif isinstance(answer, int) and self.replaced_changes is not None:
            changes, share = self.replaced_changes[:, answer], trace.replaced[answer]
        if changes is None:
            raise InputError(f"There is no answer {answer!r:.40} in this sweep.")
        # Of two verdicts the one gains what the other loses.
        return -changes if share >= 0.5 else changes


def clean_run(bert, trace):
    """The pass that ablations are compared with; made once, it serves any number of them.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with a mask or a second text; any for a model that was
            fine-tuned to classify or scores every token.
    Returns:
        `CleanRun`.
    Raises:
        NothingToPredict, MissingHead: there is no answer to change.
    """
    if classifier_settings(bert) is None and "replaced" not in bert.heads:
        check_question(trace.masks, trace.text_b, bert.heads, bert.name)
    states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
    answers = _read(bert, trace, states[-1])
    return CleanRun(states, answers)


def ablate(bert, trace, ablation, top_k=5, attentions=False, attention_shifts=False, clean=None):
    """One ablation, in full.

    Args:
        bert: the `Bert` that made the trace. trace: as `clean_run` takes it.
        ablation: an `Ablation`. top_k: predictions a mask. attentions: whether the maps come along.
        attention_shifts: whether the change of every head's attention does; no map is kept for it.
        clean: the trace's `CleanRun`, if there is one already.
    Returns:
        `AblationEffect`. "Before" is the same computation with nothing switched off.
    Raises:
        NothingToPredict, MissingHead: there is no answer to change.
        InputError: a part the model or the input does not have; a bad `top_k`.
    """
    check_top_k(top_k)
    _check(ablation, bert.config, trace.length)
    clean = clean or clean_run(bert, trace)
    last, moved = _alone(bert.hooked(), clean.states, trace, ablation, attention_shifts)
    before, after = clean.answers, _read(bert, trace, last)
    changes, divergences = _change(before["mlm"][0], after["mlm"])
    maps = _maps(bert.hooked(), clean.states, trace, ablation) if attentions else None
    verdicts = {
        f"{name}_{when}": verdict
        for when, answers in (("before", before), ("after", after))
        for name, verdict in _verdicts(bert, trace, answers, top_k).items()
    }
    return AblationEffect(
        trace.tokens,
        ablation,
        verdicts.pop("masks_before"),
        verdicts.pop("masks_after"),
        log_probability_changes=changes[0],
        divergences=divergences[0],
        attentions=maps,
        attention_shifts=moved,
        **verdicts,
    )


def sweep(bert, trace, ablations, progress=None):
    """Any number of ablations, each alone.

    Layers before the first that is touched are not run again, and ablations that begin at the same layer run
    as a batch.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with a mask or a second text.
        ablations: `Ablation`s, in any order.
        progress: callable(done, total) in ablations; returning False cancels.
    Returns:
        `AblationSweep`, in the order of `ablations`.
    Raises:
        As `ablate`; Cancelled by `progress`.
    """
    ablations = tuple(ablations)
    for ablation in ablations:
        _check(ablation, bert.config, trace.length)
    clean = clean_run(bert, trace)
    states, before = clean.states, clean.answers
    masks = before["mlm"].shape[1]
    changes, divergences = np.zeros((2, len(ablations), masks))
    other = {name: np.zeros(len(ablations)) for name in ("nsp", "sop", "task") if name in before}
    if "replaced" in before:
        other["replaced"] = np.zeros((len(ablations), trace.length))
    done, block = 0, max(1, min(TOKENS_PER_BATCH // trace.length, MASKS_PER_BATCH // max(1, masks)))
    for first, places in _groups(ablations, len(states) - 1):
        for start in range(0, len(places), block):
            chosen = places[start : start + block]
            last = _without(bert.hooked(), states, trace, [ablations[place] for place in chosen], first)
            after = _read(bert, trace, last)
            changes[chosen], divergences[chosen] = _change(before["mlm"][0], after["mlm"])
            for name, values in other.items():
                values[chosen] = _gain(name, before[name][0], after[name])
            done += len(chosen)
            report(progress, done, len(ablations))
    followed = before["mlm"][0].argmax(axis=1)
    words = tuple(bert.tokenizer.id_to_token(int(one)) for one in followed)
    found = changes, divergences, *map(other.get, ("nsp", "sop", "task", "replaced"))
    return AblationSweep(trace.tokens, trace.masks if masks else (), ablations, followed, words, *found)


#: What `ablation_or_sweep` can switch off one at a time.
SWEEPS = ("heads", "layers", "feed_forward", "tokens")


def ablation_or_sweep(
    bert, trace, heads=(), layers=(), feed_forward=(), tokens=(), sweep_over="heads", top_k=5, progress=None
):
    """The parts named, together; with none named each of a kind alone.

    Args:
        bert: the `Bert` that made the trace. trace: as `clean_run` takes it.
        heads, layers, feed_forward, tokens: as of `Ablation`.
        sweep_over: out of `SWEEPS`. top_k: predictions a mask. progress: as of `sweep`.
    Returns:
        `AblationEffect`, or `AblationSweep` where no part is named.
    Raises:
        As `ablate` and `sweep`.
    """
    named = Ablation(tuple(heads), tuple(layers), tuple(feed_forward), tuple(tokens))
    if named != Ablation():
        return ablate(bert, trace, named, top_k, attention_shifts=True)
    if sweep_over == "tokens":
        return sweep(bert, trace, every_token(trace), progress)
    every = {"heads": every_head, "layers": every_layer, "feed_forward": every_feed_forward}
    return sweep(bert, trace, every[sweep_over](bert.config), progress)


def every_head(config):
    """An `Ablation` of each head, in the order of layers, then heads."""
    return tuple(
        Ablation(heads=((layer, head),))
        for layer in range(config.num_hidden_layers)
        for head in range(config.num_attention_heads)
    )


def every_layer(config):
    """An `Ablation` of each layer."""
    return tuple(Ablation(layers=(layer,)) for layer in range(config.num_hidden_layers))


def every_feed_forward(config):
    """An `Ablation` of each feed-forward block."""
    return tuple(Ablation(feed_forward=(layer,)) for layer in range(config.num_hidden_layers))


def every_token(trace):
    """An `Ablation` of the attention to each token, in all layers."""
    return tuple(Ablation(tokens=(position,)) for position in range(trace.length))


def _groups(ablations, layers):
    groups = defaultdict(list)
    for place, ablation in enumerate(ablations):
        groups[ablation.first_layer(layers)].append(place)
    return sorted(groups.items())


def _check(ablation, config, length):
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    wanted = [
        *ablation.layers,
        *ablation.feed_forward,
        *(layer for layer, _ in ablation.heads),
        *(ablation.attention_layers or ()),
    ]
    for name, numbers, limit in (
        ("layer", wanted, layers),
        ("head", [head for _, head in ablation.heads], heads),
        ("token", [*ablation.tokens, *sum(map(tuple, ablation.links), ())], length),
    ):
        for number in numbers:
            if not 0 <= number < limit:
                raise InputError(f"There is no {name} {number}: they are numbered 0 to {limit - 1}.")
    for row in range(length):
        hidden = {*ablation.tokens, *(to for looking, to in ablation.links if looking == row)}
        if len(hidden) == length:
            raise InputError(f"Token {row} would have nothing left to attend to: leave it at least one token.")


def _without(hooked, states, trace, ablations, first):
    """The last hidden state [B, T, H] under B ablations, none of which touches a layer before `first`."""
    import tensorflow as tf

    x = tf.repeat(states[min(first, len(states) - 1)], len(ablations), axis=0)
    for layer in range(first, len(states) - 1):
        x = _layer_without(hooked, layer, x, trace, ablations)
    return x


def _alone(hooked, states, trace, ablation, attention_shifts):
    """The last hidden state [1, T, H] under one ablation, and the shift of every head [L, N] or None."""
    layers = len(states) - 1
    first = ablation.first_layer(layers)
    moved = np.zeros((layers, hooked.config.num_attention_heads)) if attention_shifts else None
    x = states[first]
    for layer in range(first, layers):
        bias = _bias(layer, trace, (ablation,))
        # What goes into the first layer is as it was, and so is where its heads look.
        if not attention_shifts or (layer == first and bias is None):
            x = _layer_without(hooked, layer, x, trace, (ablation,))
            continue
        before = hooked.values(layer, states[layer], ("pattern",))["pattern"][0].numpy()
        x, after = _layer_without(hooked, layer, x, trace, (ablation,), maps=True)
        moved[layer] = np.abs(after[0].numpy() - before).sum(axis=-1, dtype=np.float64).mean(axis=-1) / 2
    return x, moved


def _layer_without(hooked, layer, x, trace, ablations, maps=False):
    """The next hidden state [B, T, H] of the state `x`; with `maps` also the attention maps [B, N, T, T]."""
    heads = np.zeros((len(ablations), hooked.config.num_attention_heads, 1, 1), bool)
    for row, ablation in enumerate(ablations):
        heads[row, [head for where, head in ablation.heads if where == layer]] = True
    feed_forward = np.array([layer in ablation.feed_forward for ablation in ablations])[:, None, None]
    off = np.array([layer in ablation.layers for ablation in ablations])[:, None, None]
    replace = {
        "z": (heads, np.zeros((1, 1, 1, 1), np.float32)),
        "mlp_out": (feed_forward, np.zeros((1, 1, 1), np.float32)),
        "resid_post": (off, x),
    }
    replace = {point: pair for point, pair in replace.items() if pair[0].any()}
    points = ("resid_post", "pattern") if maps else ("resid_post",)
    found = hooked.values(layer, x, points, _bias(layer, trace, ablations), replace)
    return (found["resid_post"], found["pattern"]) if maps else found["resid_post"]


def _bias(layer, trace, ablations):
    from bert_tf.inference.hooked_model import blocked

    def here(ablation):
        return ablation.attention_layers is None or layer in ablation.attention_layers

    if not any((ablation.tokens or ablation.links) and here(ablation) for ablation in ablations):
        return None
    return np.concatenate(
        [blocked(a.tokens, trace.length, a.links) if here(a) else blocked((), trace.length) for a in ablations]
    )


def _read(bert, trace, last):
    """What the heads say of last states [B, T, H]: a dict of float32 arrays.

    "mlm": log-probabilities at the masks [B, P, V], P 0 without such a head. Of the pair "nsp" or "sop" [B, 2], of a
    discriminator "replaced" [B, T, 2] and of a classifier "task" [B, K], where the model has such a head.
    """
    import tensorflow as tf

    rows, masks = last.shape[0], list(trace.masks) if "mlm" in bert.heads else []
    found = {"mlm": np.zeros((rows, len(masks), bert.config.vocab_size), np.float32)}
    if masks:
        picked = tf.reshape(tf.gather(bert.hooked().read(last), masks, axis=1), (rows * len(masks), -1))
        logs = bert.hooked().mlm_log_probabilities(picked).numpy()
        found["mlm"] = logs.reshape(rows, len(masks), -1)
    if trace.text_b is not None and "nsp" in bert.heads:
        found["nsp"] = bert.hooked().nsp_log_probabilities(last).numpy()
    if trace.text_b is not None and "sop" in bert.heads:
        found["sop"] = bert.hooked().sop_log_probabilities(last).numpy()
    if "replaced" in bert.heads:
        found["replaced"] = bert.hooked().replaced_log_probabilities(last).numpy()
    if classifier_settings(bert):
        found["task"] = bert.hooked().class_scores(last).numpy()
    return found


def _verdicts(bert, trace, answers, top_k):
    """The answers of one input, each as it is told: "masks", and "nsp", "sop", "classes" and "replaced", None where
    there are none."""
    masks = trace.masks if answers["mlm"].shape[1] else ()
    originals = trace.original_ids[list(masks)]
    return {
        "masks": mask_predictions(answers["mlm"][0], masks, originals, bert.tokenizer, top_k) if masks else (),
        "nsp": NextSentence.from_logits(answers["nsp"][0]) if "nsp" in answers else None,
        "sop": SentenceOrder.from_logits(answers["sop"][0]) if "sop" in answers else None,
        "classes": class_prediction(classifier_settings(bert), answers["task"][0]) if "task" in answers else None,
        "replaced": np.exp(answers["replaced"][0, :, 1], dtype=np.float64) if "replaced" in answers else None,
    }


def _gain(head, before, after):
    """What an answer beside the masks has gained, float64 [B], from its scores [2 or K] and [B, 2 or K]; of the tokens
    float64 [B, T], from [T, 2] and [B, T, 2]."""
    if head == "replaced":
        return np.exp(after[..., 1], dtype=np.float64) - np.exp(before[..., 1], dtype=np.float64)
    if head == "task":
        best = int(before.argmax())
        return (after[:, best] - before[best]).astype(np.float64)
    return np.exp(after[:, 0], dtype=np.float64) - np.exp(before[0], dtype=np.float64)


def _change(before, after):
    """(changes, divergences), float64 [B, P], from log-probabilities [P, V] and [B, P, V]."""
    best = before.argmax(axis=1)
    rows = np.arange(len(best))
    changes = after[:, rows, best] - before[rows, best]
    divergences = np.zeros(changes.shape)
    for row, logs in enumerate(after):  # one at a time: [B, P, V] is large already
        middle = np.logaddexp(before, logs) - np.log(2)
        halves = (np.exp(side) * (side - middle) for side in (before, logs))
        divergences[row] = sum(half.sum(axis=1, dtype=np.float64) for half in halves) / (2 * np.log(2))
    return changes.astype(np.float64), np.clip(divergences, 0, 1)


def _maps(hooked, states, trace, ablation):
    x, maps = states[0], []
    for layer in range(len(states) - 1):
        x, looks = _layer_without(hooked, layer, x, trace, (ablation,), maps=True)
        maps.append(looks[0].numpy())
    return np.stack(maps)


ANALYSIS = Analysis(
    name="ablation",
    function=ablation_or_sweep,
    summary="what changes without some heads, layers, blocks or the attention to tokens",
    source="Michel et al. 2019, Are Sixteen Heads Really Better than One?; Geva et al. 2023",
    options=(
        Option("heads", "heads to switch off, from 0", several=True, default=(), metavar="L.H", parse=parse_head),
        Option("layers", "layers to switch off, from 0", int, several=True, default=(), metavar="L"),
        Option(
            "feed_forward",
            "layers whose feed-forward block to switch off",
            int,
            several=True,
            default=(),
            metavar="L",
        ),
        Option("tokens", "positions of tokens nobody may look at", int, several=True, default=(), metavar="P"),
        Option(
            "sweep_over",
            "with none named, each alone of",
            default="heads",
            choices=SWEEPS,
            parse=underscored,
            metavar="PARTS",
            aliases=("sweep",),
        ),
        TOP_K,
    ),
)
