"""Saliency by any of its methods: which words a prediction depends on, how few are enough, which others change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf.analysis import ANY_ANSWER, Analysis, Option
from bert_tf.errors import InputError, refuse_one_alone
from bert_tf.explain.attribution.deeplift import deeplift
from bert_tf.explain.attribution.hotflip import HotFlip, hotflip
from bert_tf.explain.attribution.input_reduction import InputReduction, reduce_input
from bert_tf.explain.attribution.lime import MAX_SAMPLES, lime
from bert_tf.explain.attribution.lrp import layerwise_relevance
from bert_tf.explain.attribution.saliency import (
    COPIES,
    MOST_GAP,
    Saliency,
    gradient_x_input,
    integrated_gradients,
    occlusion,
    smoothgrad,
)
from bert_tf.explain.datasets.text_rows import texts_of_file

if TYPE_CHECKING:
    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: Name of each method -> its function.
SALIENCY_METHODS: dict[str, Callable[..., Saliency | InputReduction | HotFlip]] = {
    "integrated-gradients": integrated_gradients,
    "gradient-x-input": gradient_x_input,
    "smoothgrad": smoothgrad,
    "deeplift": deeplift,
    "lrp": layerwise_relevance,
    "occlusion": occlusion,
    "lime": lime,
    "input-reduction": reduce_input,
    "hotflip": hotflip,
}
#: Earlier name of a method -> its present name; the command line and links still accept the earlier names.
METHOD_ALIASES = {
    "integrated": "integrated-gradients",
    "gradient": "gradient-x-input",
    "smooth": "smoothgrad",
    "relevance": "lrp",
    "reduction": "input-reduction",
}


def saliency(
    bert: Bert,
    trace: Trace,
    target: Target,
    method: str = "integrated-gradients",
    steps: int | None = None,
    noise: float = 0.01,
    baseline: str | None = None,
    references: Sequence[str] | None = None,
    unit: str = "word",
    samples: int = 128,
    flips: int = 3,
    tried: int = 2,
    progress: Callable[[int, int], Any] | None = None,
) -> Saliency | InputReduction | HotFlip:
    """What each word of the texts does to a target, by one of the methods.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target.
        method: str. A key of `SALIENCY_METHODS`.
        steps: int or None. The number of gradients of integrated-gradients, or of noisy copies of smoothgrad; None for
            as many gradients as keep the convergence delta within `MOST_GAP`, and `COPIES` copies.
        noise: float. For smoothgrad, as a share of the range of the token vectors.
        baseline: str or None. The token that stands for a missing word; None for the default of each method.
        references: sequence of strings or None. For deeplift, texts whose tokens are the baseline instead of
            `baseline`; the scores are the mean over all of them.
        unit: str. For occlusion, "word" or "token".
        samples: int. For lime.
        flips: int. For hotflip, its `most`.
        tried: int. For hotflip.
        progress: callable(done, total) or None. Returning False cancels.
    Returns:
        `Saliency`; with input-reduction `InputReduction`, with hotflip `HotFlip`.
    Raises:
        InputError: there is no such method, a setting is out of range, or `references` with another method than
            deeplift or with `baseline`.
        Cancelled: `progress` returned False.
    """
    if method not in SALIENCY_METHODS:
        raise InputError(f"There is no method {method!r:.40}; there are {', '.join(SALIENCY_METHODS)}.")
    _check({"references": references, "method": method, "baseline": baseline})
    refuse_one_alone(references, "reference texts")
    settings_of_methods: dict[str, dict[str, Any]] = {
        "integrated-gradients": {
            "baseline": baseline,
            **({"most_gap": MOST_GAP} if steps is None else {"steps": steps}),
        },
        "smoothgrad": {"copies": COPIES if steps is None else steps, "noise": noise},
        "deeplift": {"baseline": baseline if references is None else references},
        "occlusion": {"baseline": baseline, "unit": unit},
        "lime": {"samples": samples, "baseline": baseline},
        "hotflip": {"most": flips, "tried": tried},
    }
    settings = settings_of_methods.get(method, {})
    if settings.get("baseline", "") is None:
        del settings["baseline"]
    if method != "gradient-x-input":  # it takes a single step and reports no progress
        settings["progress"] = progress
    return SALIENCY_METHODS[method](bert, trace, target, **settings)


def _check(options: dict[str, Any]) -> None:
    if options["references"] is not None and (options["method"] != "deeplift" or options["baseline"] is not None):
        raise InputError("--references goes with --method deeplift, and without --baseline.")


ANALYSIS = Analysis(
    name="saliency",
    function=saliency,
    summary="which words a prediction depends on",
    source=(
        "Sundararajan et al. 2017; Shrikumar et al. 2017; Smilkov et al. 2017; Bach et al. 2015; Ali et al. 2022;"
        " Zeiler and Fergus 2014; Ribeiro et al. 2016; Feng et al. 2018; Ebrahimi et al. 2018"
    ),
    options=(
        Option(
            "method",
            "method",
            default="integrated-gradients",
            choices=tuple(SALIENCY_METHODS),
            metavar="M",
            value_aliases=METHOD_ALIASES,
        ),
        Option(
            "steps",
            "number of gradients of integrated-gradients (default: as many as keep the convergence delta within "
            f"{100 * MOST_GAP:.0f} percent of what the scores explain), or of noisy copies of smoothgrad (default: "
            f"{COPIES})",
            int,
            minimum=1,
            maximum=1000,
            metavar="S",
        ),
        Option(
            "noise",
            "noise of smoothgrad, as a share of the range of the token vectors",
            float,
            0.01,
            minimum=0,
            maximum=1,
            metavar="SHARE",
        ),
        Option("baseline", "the token that stands for a missing word, such as [PAD] or [MASK]", metavar="TOKEN"),
        Option(
            "references",
            "for deeplift: file of texts, one a line, whose tokens are the baseline; the scores are their mean",
            metavar="FILE",
            parse=texts_of_file,
        ),
        Option(
            "unit", "what occlusion replaces in one step", default="word", choices=("word", "token"), metavar="UNIT"
        ),
        Option(
            "samples",
            "number of inputs with masked words, for lime",
            int,
            128,
            minimum=2,
            maximum=MAX_SAMPLES,
            metavar="S",
        ),
        Option("flips", "largest number of words that hotflip changes", int, 3, minimum=1, maximum=10, metavar="N"),
        Option(
            "tried",
            "replacements that hotflip tries for each word of the text",
            int,
            2,
            minimum=1,
            maximum=20,
            metavar="N",
        ),
    ),
    target=True,
    needs=ANY_ANSWER,
    check=_check,
)
