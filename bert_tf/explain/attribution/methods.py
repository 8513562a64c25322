"""Saliency by any of its methods: which words an answer depends on, how few are enough, which others change it."""

import sys
from pathlib import Path

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError
from bert_tf.explain.attribution.deeplift import deeplift
from bert_tf.explain.attribution.hotflip import hotflip
from bert_tf.explain.attribution.input_reduction import reduce_input
from bert_tf.explain.attribution.lime import MAX_SAMPLES, lime
from bert_tf.explain.attribution.lrp import layerwise_relevance
from bert_tf.explain.attribution.saliency import gradient_x_input, integrated_gradients, occlusion, smoothgrad
from bert_tf.explain.datasets.text_rows import file_kind, read_rows

#: Name of each method -> its function.
SALIENCY_METHODS = {
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
#: Earlier names of methods -> those of now, on the command line and in links.
METHOD_ALIASES = {
    "integrated": "integrated-gradients",
    "gradient": "gradient-x-input",
    "smooth": "smoothgrad",
    "relevance": "lrp",
    "reduction": "input-reduction",
}


def saliency(
    bert,
    trace,
    target,
    method="integrated-gradients",
    steps=32,
    noise=0.01,
    baseline=None,
    references=None,
    unit="word",
    samples=128,
    flips=3,
    tried=2,
    progress=None,
):
    """What each word of the texts does to an answer, by one of the methods.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        method: a key of `SALIENCY_METHODS`.
        steps: gradients taken by integrated-gradients, noisy copies by smoothgrad.
        noise: of smoothgrad, a share of the range of the token vectors.
        baseline: the token that stands for nothing; None for what each method's paper starts from.
        references: texts whose tokens are deeplift's baseline instead, for the mean over all of them.
        unit: of occlusion, "word" or "token". samples: of lime. flips, tried: of hotflip, its `most` and `tried`.
        progress: callable(done, total); returning False cancels.
    Returns:
        `Saliency`; `InputReduction` of input-reduction, `HotFlip` of hotflip.
    Raises:
        InputError: no such method, or a setting is no good. Cancelled: by `progress`.
    """
    if method not in SALIENCY_METHODS:
        raise InputError(f"There is no method {method!r:.40}; there are {', '.join(SALIENCY_METHODS)}.")
    settings = {
        "integrated-gradients": {"steps": steps, "baseline": baseline},
        "smoothgrad": {"copies": steps, "noise": noise},
        "deeplift": {"baseline": references or baseline},
        "occlusion": {"baseline": baseline, "unit": unit},
        "lime": {"samples": samples, "baseline": baseline},
        "hotflip": {"most": flips, "tried": tried},
    }.get(method, {})
    if settings.get("baseline", "") is None:
        del settings["baseline"]
    if method != "gradient-x-input":  # a single step
        settings["progress"] = progress
    return SALIENCY_METHODS[method](bert, trace, target, **settings)


def _reference_texts(path):
    """The texts of a file, one a line or as `read_rows` takes it; "-" is standard input."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    return tuple(row.text_a for row in read_rows(data, file_kind(path)).rows)


def _check(options):
    if options["references"] is not None and (options["method"] != "deeplift" or options["baseline"] is not None):
        raise InputError("--references goes with --method deeplift, and without --baseline.")


ANALYSIS = Analysis(
    name="saliency",
    function=saliency,
    summary="which words an answer depends on",
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
            "gradients taken by integrated-gradients, noisy copies by smoothgrad",
            int,
            32,
            minimum=1,
            maximum=1000,
            metavar="S",
        ),
        Option(
            "noise",
            "of smoothgrad, as a share of the range of the token vectors",
            float,
            0.01,
            minimum=0,
            maximum=1,
            metavar="SHARE",
        ),
        Option("baseline", "the token that stands for nothing: [PAD] or [MASK]", metavar="TOKEN"),
        Option(
            "references",
            "of deeplift: texts whose tokens are the baseline instead, one a line; the mean over all of them is given",
            metavar="FILE",
            parse=_reference_texts,
        ),
        Option("unit", "what occlusion replaces at a time", default="word", choices=("word", "token"), metavar="UNIT"),
        Option("samples", "inputs with words covered, of lime", int, 128, minimum=2, maximum=MAX_SAMPLES, metavar="S"),
        Option("flips", "words changed at most, by hotflip", int, 3, minimum=1, maximum=10, metavar="N"),
        Option("tried", "words that hotflip reads for each of the text", int, 2, minimum=1, maximum=20, metavar="N"),
    ),
    target=True,
    check=_check,
)
