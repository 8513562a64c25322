"""Activation patching: where in a model the difference between two inputs turns into a different answer.

One vector of the run on one input (the clean one) is put into the run on another (the corrupted one): a hidden state,
or what the attention block, one of its heads or the feed-forward block of a layer adds to it. Where that brings the
clean answer back, the vector carried what the answer hangs on.

Dimension legend: L layers, N heads, D head size, T tokens, H hidden, B batch, R rows and C columns of a map. Source:
Meng et al. 2022, "Locating and Editing Factual Associations in GPT", section 2 (causal tracing, of states and of both
kinds of blocks); Vig et al. 2020 (interventions in BERT-like models, single heads too).
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Optional

import numpy as np

from bert_tf.analysis import Analysis, Option, underscored
from bert_tf.errors import InputError, NotComparable, checked_text, report
from bert_tf.explain.attribution.target import Target, check_position
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.results import Result, frame

#: What can be patched.
COMPONENTS = ("hidden_state", "attention", "feed_forward", "head")
#: Block -> the hook point of what it adds.
_BLOCKS = {"attention": "attn_out", "feed_forward": "mlp_out"}


@dataclass(frozen=True, eq=False)
class PatchingResult(Result, figures={"map": "bert_tf.plots.interventions.patching:patching_figure"}):
    """A target's log-probability with one vector patched.

    Attributes:
        tokens, corrupted_tokens: T strings each, of the clean and of the corrupted input.
        target: the `Target`. component: what was patched, out of `COMPONENTS`.
        clean, corrupted: its log-probability (natural logarithm) in either run as it is.
        scores: float64 [R, C], in the corrupted run with the vector of row r at position c from the clean one. Of
            states R is L + 1, row 0 the embeddings; of blocks R is L, row 0 the first layer's. Of heads R is L too, and
            column c is head c, put over at all positions.
        position: the only one where heads are put over; None for all.
        recovered: float64 [R, C], share of the difference that the patch brings back: 0 nothing, 1 all; NaN if
            there is no difference.
    """

    tokens: tuple
    corrupted_tokens: tuple
    target: Target
    component: str
    clean: float
    corrupted: float
    scores: np.ndarray
    position: Optional[int] = None
    recovered: np.ndarray = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "recovered", share_recovered(self, self.scores))

    def to_frame(self):
        """A row for each patch: the hidden state or the layer, and the position or the head."""
        rows, columns = self.scores.shape
        number = np.tile(range(columns), rows)
        if self.component == "head":
            of_column = {"head": number}
        else:
            both = self.tokens, self.corrupted_tokens
            of_column = {"position": number}
            of_column |= {
                name: np.tile(np.array(one, object), rows) for name, one in zip(("token", "corrupted_token"), both)
            }
        return frame(
            {
                "hidden_state" if self.component == "hidden_state" else "layer": np.repeat(range(rows), columns),
                **of_column,
                "log_probability": self.scores.ravel(),
                "recovered": self.recovered.ravel(),
            }
        )


def share_recovered(result, score):
    """What of the difference between the clean and the corrupted run a score brings back; NaN if there is none."""
    difference = result.clean - result.corrupted
    return (score - result.corrupted) / (difference if difference else np.nan)


def patch_states(bert, clean, corrupted, target, progress=None):
    """Patch every hidden state at every position, one at a time.

    Args:
        bert: the `Bert` that made the traces.
        clean, corrupted: `Trace`s of equal length.
        target: a `Target`, usually the clean trace's answer.
        progress: callable(done, total) in patches; returning False cancels.
    Returns:
        `PatchingResult`.
    Raises:
        NotComparable: the inputs differ in length. Cancelled: by `progress`.
    """
    good, bad = clean_and_corrupted_states(bert, clean, corrupted)

    def patched(layer, positions):
        states = np.repeat(bad[layer].numpy(), len(positions), axis=0)
        states[np.arange(len(positions)), positions] = good[layer].numpy()[0, positions]
        return states, layer

    return _mapped(
        bert, (good, bad), (clean, corrupted), target, "hidden_state", (len(good), clean.length), patched, progress
    )


def patch_blocks(bert, clean, corrupted, target, block, progress=None):
    """Patch what a block of every layer adds at every position, one at a time; residual and norm go on from there.

    These are the vectors that TransformerLens calls attn_out and mlp_out.

    Args:
        block: "attention", the output of the attention block with its projection, or "feed_forward". The others as of
            `patch_states`.
    Returns:
        `PatchingResult`.
    Raises:
        InputError: no such block. Otherwise as `patch_states`.
    """
    if block not in _BLOCKS:
        raise InputError(f"There is no block {block!r:.40}; choose from {', '.join(_BLOCKS)}.")
    good, bad = clean_and_corrupted_states(bert, clean, corrupted)
    layers = len(good) - 1
    hooked, point = bert.hooked(), _BLOCKS[block]
    added = [hooked.values(layer, good[layer], (point,))[point] for layer in range(layers)]

    def patched(layer, positions):
        places = (np.arange(clean.length) == positions[:, None])[..., None]
        return hooked.layer(layer, bad[layer], replace={point: (places, added[layer])}), layer + 1

    return _mapped(bert, (good, bad), (clean, corrupted), target, block, (layers, clean.length), patched, progress)


def patch_heads(bert, clean, corrupted, target, position=None, progress=None):
    """Patch what every head adds, one at a time; the other heads stay, residual and norm go on from there.

    What a head adds are its values, weighed by its attention and taken through its rows of the output matrix:
    TransformerLens' result, or z before that matrix, which brings back the same.

    Args:
        position: the only token at which a head's vector is put over; None for all. The others as of `patch_states`.
    Returns:
        `PatchingResult`, a row for each layer and a column for each head.
    Raises:
        MaskPositionError: no such position. Otherwise as `patch_states`.
    """
    good, bad = clean_and_corrupted_states(bert, clean, corrupted)
    if position is not None:
        check_position(clean, position)
    size = len(good) - 1, bert.config.num_attention_heads
    hooked, places = bert.hooked(), np.full((1, 1, clean.length, 1), True)
    if position is not None:
        places = np.arange(clean.length)[:, None] == position

    @lru_cache(maxsize=1)
    def clean_z(layer):
        return hooked.values(layer, good[layer], ("z",))["z"]

    def patched(layer, heads):
        chosen = (np.arange(size[1]) == heads[:, None])[..., None, None]  # [B, N, 1, 1]
        return hooked.layer(layer, bad[layer], replace={"z": (chosen & places, clean_z(layer))}), layer + 1

    return _mapped(bert, (good, bad), (clean, corrupted), target, "head", size, patched, progress, position)


def clean_and_corrupted_states(bert, *traces):
    """The hidden states of two inputs, lists of L + 1 tensors [1, T, H].

    Raises:
        NotComparable: they differ in length.
    """
    lengths = [trace.length for trace in traces]
    if lengths[0] != lengths[1]:
        raise NotComparable(
            f"The inputs must have equally many tokens: the first has {lengths[0]}, the second "
            f"{lengths[1]}. Replace a word by one that is cut into as many pieces."
        )
    return [bert.hooked().states(trace.token_ids[None], trace.segments[None]) for trace in traces]


def patch(bert, clean, target, corrupted, component="hidden_state", at=None, progress=None):
    """Patch one kind of vector, each alone.

    Args:
        bert: the `Bert` that made the trace. clean: a `Trace`. target: a `Target`.
        corrupted: a `Trace` of equal length, or its first text; the second text and the masks are then the clean one's.
        component: out of `COMPONENTS`. at: with "head", the only position; None for all.
        progress: callable(done, total) in patches; returning False cancels.
    Returns:
        `PatchingResult`.
    Raises:
        InputError: no such component. Otherwise as `patch_states` and `patch_heads`.
    """
    corrupted = corrupted_trace(bert, clean, corrupted)
    if component == "hidden_state":
        return patch_states(bert, clean, corrupted, target, progress)
    if component == "head":
        return patch_heads(bert, clean, corrupted, target, at, progress)
    return patch_blocks(bert, clean, corrupted, target, component, progress)


def corrupted_trace(bert, clean, corrupted):
    """The `Trace` of a corrupted input: itself, or of a first text read with the clean trace's second and its masks."""
    if not isinstance(corrupted, str):
        return corrupted
    own = [place for place in clean.masks if clean.original_tokens[place] != clean.tokens[place]]
    return bert.trace(corrupted, clean.text_b, own)


def _mapped(bert, states, traces, target, component, size, patched, progress, position=None):
    """The `PatchingResult` of `size` (R, C).

    patched: callable(row, columns [B]) -> (states [B, T, H], the layer that reads them).
    """
    hooked, (rows, columns) = bert.hooked(), size
    scores = np.empty(size)
    block = max(1, TOKENS_PER_BATCH // traces[0].length)
    for row in range(rows):
        for start in range(0, columns, block):
            chosen = np.arange(start, min(start + block, columns))
            scores[row, chosen] = hooked.score(hooked.finish(*patched(row, chosen)), target)
            report(progress, row * columns + int(chosen[-1]) + 1, scores.size)
    ends = (float(hooked.score(one[-1], target)[0]) for one in states)
    return PatchingResult(*(trace.tokens for trace in traces), target, component, *ends, scores, position)


def _component(text):
    return {"state": "hidden_state"}.get(text, underscored(text))


def check_corrupted(options):
    """Refuse a corrupted text without a word."""
    checked_text(options["corrupted"], "--corrupted")


def _check(options):
    check_corrupted(options)
    if options["at"] is not None and options["component"] != "head":
        raise InputError("--at goes with --component head.")


#: The corrupted input of the analyses that patch.
CORRUPTED = Option(
    "corrupted", "another first text with as many tokens", required=True, metavar="TEXT", aliases=("against",)
)
ANALYSIS = Analysis(
    name="patching",
    function=patch,
    summary="where in the model another input turns into another answer",
    source="Vig et al. 2020; Meng et al. 2022, Locating and Editing Factual Associations in GPT",
    options=(
        CORRUPTED,
        Option(
            "component",
            "what is patched, of each layer and token (heads at all tokens)",
            default="hidden_state",
            choices=COMPONENTS,
            parse=_component,
            metavar="WHAT",
            aliases=("carry",),
        ),
        Option("at", "with --component head: at this token alone", int, metavar="P"),
    ),
    target=True,
    check=_check,
)
