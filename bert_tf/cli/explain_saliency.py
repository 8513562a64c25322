"""`explain saliency`: which words an answer hangs on, and how few of them are enough for it."""

import math

from bert_tf.cli.explain_shared import Kind, Progress
from bert_tf.cli.explain_target import add_target, check_target, target_of, target_record
from bert_tf.cli.render import percent

_METHODS = ("gradient", "smoothgrad", "integrated", "occlusion", "reduction")


def saliency(bert, trace, args):
    """Which words an answer hangs on."""
    target = target_of(bert, trace, args)
    if args.method == "reduction":
        return _reduction(bert, trace, target, args)
    found = _scored(bert, trace, target, args)
    words = [{**_word(one.word), "score": one.score} for one in found.words]
    record = {
        "method": found.method,
        "target": target_record(target),
        "log_probability": found.score,
        "baseline_log_probability": found.baseline_score,
        "noisy_log_probability": found.noisy_score,
        "gap": found.gap,
        "tokens": trace.tokens,
        "scores": found.tokens,
        "words": words,
    }
    rows = [("for", target.label), *((word["text"], f"{word['score']:+.3f}") for word in words)]
    if found.gap is not None:
        rows.append(("(gap)", f"{found.gap:+.3f}"))
    if found.noisy_score is not None:
        rows.append(("(lost to noise)", f"{found.noisy_score - found.score:+.3f}"))
    return record, rows, "<>"


def _scored(bert, trace, target, args):
    from bert_tf.explain import gradient_x_input, integrated_gradients, occlusion, smoothgrad

    with Progress(args) as progress:
        return {
            "gradient": lambda: gradient_x_input(bert, trace, target),
            "smoothgrad": lambda: smoothgrad(bert, trace, target, args.steps, args.noise, progress=progress),
            "integrated": lambda: integrated_gradients(
                bert, trace, target, args.steps, args.baseline or "[PAD]", progress
            ),
            "occlusion": lambda: occlusion(bert, trace, target, args.baseline or "[MASK]", "token", progress),
        }[args.method]()


def _reduction(bert, trace, target, args):
    """What is left when words are taken away while the answer stays the likeliest."""
    from bert_tf.explain import reduce_input

    with Progress(args) as progress:
        found = reduce_input(bert, trace, target, progress)
    record = {
        "method": "input_reduction",
        "target": target_record(target),
        "likeliest": found.holds,
        "log_probability": found.score,
        "log_probability_left": found.left_score,
        "tokens": trace.tokens,
        "gone": [{**_word(one.word), "log_probability": one.score} for one in found.gone],
        "left": [_word(word) for word in found.left],
    }
    rows = [("for", target.label, percent(math.exp(found.score)))]
    rows += [("without", one.word.text, percent(math.exp(one.score))) for one in found.gone]
    rows += [("left", word.text, "") for word in found.left]
    return record, rows, "<<>"


def _word(word):
    return {"text": word.text, "source": word.source, "start": word.start, "end": word.end}


def _add(kind):
    add_target(kind)
    kind.add_argument(
        "--method",
        choices=_METHODS,
        default="integrated",
        metavar="M",
        help=f"{', '.join(_METHODS)} (default integrated)",
    )
    kind.add_argument(
        "--steps",
        type=int,
        default=32,
        metavar="S",
        help="gradients taken by integrated, copies by smoothgrad (default 32)",
    )
    kind.add_argument(
        "--noise",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="of smoothgrad, as a share of the range of the words' vectors (default 0.01)",
    )
    kind.add_argument("--baseline", metavar="TOKEN", help="stands for nothing: [PAD] or [MASK]")


KINDS = {"saliency": Kind(saliency, "which words an answer hangs on", _add, check_target)}
