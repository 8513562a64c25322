"""`explain saliency`: which words an answer hangs on, how few are enough for it, which others would change it."""

import math

from bert_tf.cli.explain.shared import Kind, Progress, data_of
from bert_tf.cli.explain.target import add_target, check_target, target_of, target_record
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError
from bert_tf.explain.datasets.text_rows import file_kind, read_rows

_METHODS = (
    "gradient",
    "smoothgrad",
    "integrated",
    "deeplift",
    "relevance",
    "occlusion",
    "lime",
    "reduction",
    "hotflip",
)


def saliency(bert, trace, args):
    """Which words an answer hangs on."""
    target = target_of(bert, trace, args)
    if args.method in ("reduction", "hotflip"):
        return (_reduction if args.method == "reduction" else _hotflip)(bert, trace, target, args)
    found = _scored(bert, trace, target, args)
    words = [{**_word(one.word), "score": one.score} for one in found.words]
    record = {
        "method": found.method,
        "target": target_record(target),
        "log_probability": found.score,
        "baseline_log_probability": found.baseline_score,
        "noisy_log_probability": found.noisy_score,
        "gap": found.convergence_delta,
        "fit": found.fit,
        "log_odds": found.log_odds,
        "rest": found.rest,
        "tokens": trace.tokens,
        "scores": found.tokens,
        "words": words,
    }
    rows = [("for", target.label), *((word["text"], _signed(word["score"])) for word in words)]
    if found.rest is not None:
        others = found.tokens.sum() - sum(one.score for one in found.words)
        rows += [(f"({name})", _signed(share)) for name, share in (("special tokens", others), *found.rest.items())]
        rows.append(("(value)" if target.is_regression else "(log-odds)", _signed(found.log_odds)))
    if found.convergence_delta is not None:
        rows.append(("(gap)", _signed(found.convergence_delta)))
    if found.noisy_score is not None:
        rows.append(("(lost to noise)", _signed(found.noisy_score - found.score)))
    if found.fit is not None:
        rows.append(("(weighted R²)", f"{found.fit:.3f}"))
    return record, rows, "<>"


def _scored(bert, trace, target, args):
    from bert_tf.explain import (
        deeplift,
        gradient_x_input,
        integrated_gradients,
        layerwise_relevance,
        lime,
        occlusion,
        smoothgrad,
    )

    with Progress(args) as progress:
        return {
            "gradient": lambda: gradient_x_input(bert, trace, target),
            "smoothgrad": lambda: smoothgrad(bert, trace, target, args.steps, args.noise, progress=progress),
            "integrated": lambda: integrated_gradients(
                bert, trace, target, args.steps, args.baseline or "[PAD]", progress
            ),
            "deeplift": lambda: deeplift(bert, trace, target, args.references or args.baseline or "[PAD]", progress),
            "relevance": lambda: layerwise_relevance(bert, trace, target, progress),
            "occlusion": lambda: occlusion(bert, trace, target, args.baseline or "[MASK]", "token", progress),
            "lime": lambda: lime(bert, trace, target, args.samples, args.baseline or "[MASK]", progress=progress),
        }[args.method]()


def _reduction(bert, trace, target, args):
    """What is left when words are taken away while the answer stays the likeliest."""
    from bert_tf.explain import reduce_input

    with Progress(args) as progress:
        found = reduce_input(bert, trace, target, progress)
    record = {
        "method": "input_reduction",
        "target": target_record(target),
        "likeliest": found.target_is_top,
        "log_probability": found.score,
        "log_probability_left": found.left_score,
        "tokens": trace.tokens,
        "gone": [{**_word(one.word), "log_probability": one.score} for one in found.removed],
        "left": [_word(word) for word in found.left],
    }
    rows = [("for", target.label, percent(math.exp(found.score)))]
    rows += [("without", one.word.text, percent(math.exp(one.score))) for one in found.removed]
    rows += [("left", word.text, "") for word in found.left]
    return record, rows, "<<>"


def _hotflip(bert, trace, target, args):
    """Words changed for others until the answer is another."""
    from bert_tf.explain import hotflip

    with Progress(args) as progress:
        found = hotflip(bert, trace, target, args.flips, args.tried, progress)
    record = {
        "method": "hotflip",
        "target": target_record(target),
        "likeliest": found.target_is_top,
        "log_probability": found.score,
        "flipped": found.flipped,
        "tokens": trace.tokens,
        "tried": [_flip(one) for one in found.tried],
        "taken": [_flip(one) for one in found.applied],
    }
    rows = [("for", target.label, "", percent(math.exp(found.score)), "nats", "by the slope", "likeliest then")]
    for name, flips in (("taken", found.applied), ("tried", found.tried)):
        rows += [
            (
                name,
                one.word.text,
                one.new,
                percent(math.exp(one.score)),
                f"{one.change:+.3f}",
                f"{one.estimate:+.3f}",
                one.answer.label,
            )
            for one in flips
        ]
    return record, rows, "<<<>>><"


def _flip(one):
    return {
        **_word(one.word),
        "new": one.new,
        "estimate": one.estimate,
        "change": one.change,
        "log_probability": one.score,
        "answer": one.answer.label,
        "answer_log_probability": one.answer_score,
        "text_a": one.text_a,
        "text_b": one.text_b,
    }


def _signed(number):
    return f"{round(float(number), 3) + 0.0:+.3f}"


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
    kind.add_argument(
        "--references",
        metavar="FILE",
        help="of deeplift: texts whose tokens stand there instead, one a line; the mean over all of them is given",
    )
    kind.add_argument(
        "--samples", type=int, default=128, metavar="S", help="inputs with words covered, of lime (default 128)"
    )
    kind.add_argument("--flips", type=int, default=3, metavar="N", help="words changed at most, by hotflip (default 3)")
    kind.add_argument(
        "--tried", type=int, default=2, metavar="N", help="words that hotflip reads for each of the text (default 2)"
    )


def _check(args):
    check_target(args)
    if args.references is None:
        return
    if args.method != "deeplift" or args.baseline is not None:
        raise InputError("--references goes with --method deeplift, and without --baseline.")
    rows = read_rows(data_of(args.references), file_kind(args.references)).rows
    args.references = [row.text_a for row in rows]


KINDS = {"saliency": Kind(saliency, "which words an answer hangs on", _add, _check)}
