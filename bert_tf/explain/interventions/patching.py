"""Activation patching: where in a model the difference between two inputs changes the prediction.

One vector from the run on one input (the clean one) replaces its counterpart in the run on another input (the corrupted
one). It is a hidden state, or what the attention block, one of its heads or the feed-forward block of a layer adds to
it. If the patched run predicts what the clean run predicts, the vector carries the information that the prediction
depends on.

Dimension legend: L layers, N heads, D head size, T tokens, H hidden, B batch, R rows and C columns of a map. Sources:
Meng et al. 2022, "Locating and Editing Factual Associations in GPT", section 2 (causal tracing, of hidden states and of
both kinds of blocks); Vig et al. 2020 (interventions in BERT-like models, also on single heads).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import ANY_ANSWER, Analysis, Option, underscored
from bert_tf.errors import InputError, NotComparable, checked_text, report
from bert_tf.explain.attribution.target import Target, check_position
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: The kinds of vectors that can be patched.
COMPONENTS = ("hidden_state", "attention", "feed_forward", "head")
#: Block -> the hook point of the vector that it adds.
_BLOCKS = {"attention": "attn_out", "feed_forward": "mlp_out"}


@dataclass(frozen=True, eq=False)
class PatchingResult(Result, figures={"map": "bert_tf.plots.interventions.patching:patching_figure"}):
    """A target's log-probability with one vector patched.

    Attributes:
        tokens, corrupted_tokens: tuple of str. The T tokens of the clean and of the corrupted input.
        target: Target. The prediction.
        component: str. The kind of vector that was patched, one of `COMPONENTS`.
        clean, corrupted: float. The target's log-probability (natural logarithm) in the clean and in the corrupted run.
        scores: np.ndarray. float64 [R, C], the target's log-probability in the corrupted run with the vector of row r
            and position c from the clean run. For hidden states R is L + 1 and row 0 holds the embeddings; for blocks R
            is L and row 0 is the first layer. For heads R is L, and column c is head c, patched at all positions.
        position: int. The only position at which heads are patched; None for all.
        recovered: np.ndarray. float64 [R, C], the share of the difference between the two runs that the patch recovers:
            0 for nothing, 1 for all; NaN if there is no difference.
    """

    tokens: tuple
    corrupted_tokens: tuple
    target: Target
    component: str
    clean: float
    corrupted: float
    scores: np.ndarray
    position: int | None = None
    recovered: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "recovered", share_recovered(self, self.scores))

    def to_frame(self) -> pd.DataFrame:
        """A row for each patch, with its hidden state or layer, and its position or head."""
        rows, columns = self.scores.shape
        number = np.tile(range(columns), rows)
        if self.component == "head":
            of_column = {"head": number}
        else:
            of_column = {
                "position": number,
                "token": np.tile(np.array(self.tokens, object), rows),
                "corrupted_token": np.tile(np.array(self.corrupted_tokens, object), rows),
            }
        return frame(
            {
                "hidden_state" if self.component == "hidden_state" else "layer": np.repeat(range(rows), columns),
                **of_column,
                "log_probability": self.scores.ravel(),
                "recovered": self.recovered.ravel(),
            }
        )


def share_recovered(result: Any, score: Any) -> Any:
    """The share of the difference between the clean and the corrupted run that a score recovers.

    Args:
        result: PatchingResult or PathPatchingResult. It has the log-probabilities `clean` and `corrupted`.
        score: float or np.ndarray. Log-probabilities in the patched run.
    Returns:
        As `score`: 0 for nothing, 1 for all; NaN if the two runs do not differ.
    """
    difference = result.clean - result.corrupted
    return (score - result.corrupted) / (difference if difference else np.nan)


def patch_states(
    bert: Bert, clean: Trace, corrupted: Trace, target: Target, progress: Callable[[int, int], Any] | None = None
) -> PatchingResult:
    """Patch every hidden state at every position, one at a time.

    Args:
        bert: Bert. The model that made the traces.
        clean, corrupted: Trace. Two inputs of equal length.
        target: Target. Usually the prediction for the clean trace.
        progress: callable(done, total). Called with numbers of patches; it cancels by returning False.
    Returns:
        `PatchingResult`.
    Raises:
        NotComparable: the inputs differ in length.
        Cancelled: by `progress`.
    """
    clean_states, corrupted_states = both = clean_and_corrupted_states(bert, clean, corrupted)

    def patched(layer, positions):
        states = np.repeat(np.asarray(corrupted_states[layer]), len(positions), axis=0)
        states[np.arange(len(positions)), positions] = np.asarray(clean_states[layer])[0, positions]
        return states, layer

    size = len(clean_states), clean.length
    return _score_patches(bert, both, (clean, corrupted), target, "hidden_state", size, patched, progress)


def patch_blocks(
    bert: Bert,
    clean: Trace,
    corrupted: Trace,
    target: Target,
    block: str,
    progress: Callable[[int, int], Any] | None = None,
) -> PatchingResult:
    """Patch the vector that a block of every layer adds at every position, one at a time.

    The residual connection, the normalisation and all that follows are computed from the patched vector.
    TransformerLens calls these vectors attn_out and mlp_out.

    Args:
        bert, clean, corrupted, target, progress: as in `patch_states`.
        block: str. "attention", the output of the attention block after its output projection, or "feed_forward".
    Returns:
        `PatchingResult`.
    Raises:
        InputError: the block does not exist. Otherwise as `patch_states`.
    """
    if block not in _BLOCKS:
        raise InputError(f"There is no block {block!r:.40}; choose from {', '.join(_BLOCKS)}.")
    clean_states, corrupted_states = both = clean_and_corrupted_states(bert, clean, corrupted)
    layers = len(clean_states) - 1
    hooked, point = bert.steps(), _BLOCKS[block]
    added = [hooked.values(layer, clean_states[layer], (point,))[point] for layer in range(layers)]

    def patched(layer, positions):
        places = (np.arange(clean.length) == positions[:, None])[..., None]
        return hooked.layer(layer, corrupted_states[layer], replace={point: (places, added[layer])}), layer + 1

    size = layers, clean.length
    return _score_patches(bert, both, (clean, corrupted), target, block, size, patched, progress)


def patch_heads(
    bert: Bert,
    clean: Trace,
    corrupted: Trace,
    target: Target,
    position: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> PatchingResult:
    """Patch the vector that every head adds, one at a time; the other heads of the layer are not patched.

    The residual connection, the normalisation and all that follows are computed from the patched vector. A head adds
    its values, weighted by its attention and multiplied by its rows of the output matrix. TransformerLens calls this
    vector result, and z before that matrix; patching either one has the same effect.

    Args:
        bert, clean, corrupted, target, progress: as in `patch_states`.
        position: int. The only token at which a head's vector is patched; None for all.
    Returns:
        `PatchingResult`, a row for each layer and a column for each head.
    Raises:
        MaskPositionError: the position does not exist. Otherwise as `patch_states`.
    """
    clean_states, corrupted_states = both = clean_and_corrupted_states(bert, clean, corrupted)
    if position is not None:
        check_position(clean, position)
    size = len(clean_states) - 1, bert.config.num_attention_heads
    hooked, places = bert.steps(), np.full((1, 1, clean.length, 1), True)
    if position is not None:
        places = np.arange(clean.length)[:, None] == position

    @lru_cache(maxsize=1)
    def clean_z(layer):
        return hooked.values(layer, clean_states[layer], ("z",))["z"]

    def patched(layer, heads):
        chosen = (np.arange(size[1]) == heads[:, None])[..., None, None]  # [B, N, 1, 1]
        replace = {"z": (chosen & places, clean_z(layer))}
        return hooked.layer(layer, corrupted_states[layer], replace=replace), layer + 1

    return _score_patches(bert, both, (clean, corrupted), target, "head", size, patched, progress, position)


def clean_and_corrupted_states(bert: Bert, *traces: Trace) -> list[list[Any]]:
    """The hidden states of two inputs, lists of L + 1 arrays or tensors float32 [1, T, H].

    Raises:
        NotComparable: the inputs differ in length.
    """
    _check_lengths(*(trace.length for trace in traces))
    return [bert.steps().states(trace.token_ids[None], trace.segments[None]) for trace in traces]


def _check_lengths(clean, corrupted):
    if clean != corrupted:
        raise NotComparable(
            f"The inputs must have equally many tokens: the first has {clean}, the second {corrupted}. Replace a word "
            "by another one that has the same number of word pieces."
        )


def patch(
    bert: Bert,
    clean: Trace,
    target: Target,
    corrupted: Trace | str,
    component: str = "hidden_state",
    at: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> PatchingResult:
    """Patch all vectors of one kind, one at a time.

    Args:
        bert: Bert. The model that made the trace.
        clean: Trace. The clean input.
        target: Target. Usually the prediction for the clean trace.
        corrupted: Trace or str. A trace of equal length, or its first text. A text is read with the second text and the
            masks of the clean input.
        component: str. One of `COMPONENTS`.
        at: int. For the component "head", the only position that is patched; None for all.
        progress: callable(done, total). Called with numbers of patches; it cancels by returning False.
    Returns:
        `PatchingResult`.
    Raises:
        InputError: the component does not exist, or `at` without heads. Otherwise as `patch_states` and `patch_heads`.

    Example:
        >>> bert = bert_tf.load()
        >>> clean = bert.trace("Paris is the capital of [MASK].")
        >>> patch(bert, clean, mask_target(bert, clean), "Rome is the capital of [MASK].").recovered.shape
    """
    _check_place(component, at)
    corrupted = corrupted_trace(bert, clean, corrupted)
    if component == "hidden_state":
        return patch_states(bert, clean, corrupted, target, progress)
    if component == "head":
        return patch_heads(bert, clean, corrupted, target, at, progress)
    return patch_blocks(bert, clean, corrupted, target, component, progress)


def corrupted_trace(bert: Bert, clean: Trace, corrupted: Trace | str) -> Trace:
    """The `Trace` of the corrupted input; a text is read with the second text and the masks of the clean trace.

    The trace of a text has no attention maps and no hidden states: patching computes the states in steps.

    Raises:
        NotComparable: the text has another number of tokens than the clean input, so its masks are elsewhere.
    """
    if not isinstance(corrupted, str):
        return corrupted
    prepared = prepare_input(bert.tokenizer, bert.max_length, corrupted, clean.text_b)
    _check_lengths(clean.length, prepared.encoding.length)
    # A mask that was typed as [MASK] stands in the texts already.
    hidden = [position for position in clean.masks if clean.original_tokens[position] != clean.tokens[position]]
    return bert.trace(corrupted, clean.text_b, hidden, attentions=False, hidden_states=False)


def _score_patches(bert, states, traces, target, component, size, patched, progress, position=None):
    """The `PatchingResult` of a map of `size` (R, C).

    patched: callable(row, columns [B]) -> (patched hidden states [B, T, H], the layer that takes them as its input).
    """
    hooked, (rows, columns) = bert.steps(), size
    scores = np.empty(size)
    block = max(1, TOKENS_PER_BATCH // traces[0].length)
    for row in range(rows):
        for start in range(0, columns, block):
            chosen = np.arange(start, min(start + block, columns))
            # Also between the layers, so that a server can use the model for others meanwhile.
            between = partial(report, progress, row * columns + start, scores.size)
            scores[row, chosen] = hooked.score(hooked.finish(*patched(row, chosen), between), target)
            report(progress, row * columns + int(chosen[-1]) + 1, scores.size)
    clean_score, corrupted_score = (float(hooked.score(run_states[-1], target)[0]) for run_states in states)
    return PatchingResult(
        traces[0].tokens,
        traces[1].tokens,
        target,
        component,
        clean_score,
        corrupted_score,
        scores,
        position,
    )


def _component(text):
    return {"state": "hidden_state"}.get(text, underscored(text))


def check_corrupted(options: dict[str, Any]) -> None:
    """Raise InputError unless the option `corrupted` holds a text with at least one word."""
    checked_text(options["corrupted"], "--corrupted")


def _check(options):
    check_corrupted(options)
    _check_place(options["component"], options["at"])


def _check_place(component, at):
    if component not in COMPONENTS:
        raise InputError(f"There is no component {component!r:.40}; choose from {', '.join(COMPONENTS)}.")
    if at is not None and component != "head":
        raise InputError("--at goes with --component head.")


#: The option that names the corrupted input, for all patching analyses.
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
            "the kind of vector to patch, in each layer and at each token (heads: at all tokens)",
            default="hidden_state",
            choices=COMPONENTS,
            parse=_component,
            metavar="WHAT",
            aliases=("carry",),
        ),
        Option("at", "with --component head: patch at this token alone", int, metavar="P"),
    ),
    target=True,
    needs=ANY_ANSWER,
    check=_check,
)
