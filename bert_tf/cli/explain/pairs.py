"""The kinds of `explain` that put two models, or two texts, side by side."""

import functools
import math

from bert_tf.cli.explain.shared import Kind, Progress, predictions_record
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError, checked_pair

_MEASURES = ("cka", "svcca", "pwcca")
_SHOWN = ("answers", "lens", "entropy", "difference")


def compare(bert, trace, args):
    """What two models say of one text, or one model of two: answers, the lens, how widely heads look, attention."""
    from bert_tf.explain import compare
    from bert_tf.inference.bert import load

    other = load(args.other, precision=args.precision) if args.other else bert
    texts, masks = (args.text_a, args.text_b), args.mask
    if args.other_text:
        texts, masks = (*args.other_text, None)[:2], args.other_mask
    sides = ((bert, trace), (other, other.trace(*texts, masks)))
    layers = [one.config.num_hidden_layers for one, _ in sides]
    tokenizers = [one.tokenizer for one, _ in sides]
    found = compare(trace, sides[1][1], *tokenizers, *layers, args.top_k, across=bool(args.other_text))
    lenses = _lenses(sides, found)
    if args.show == "lens" and not found.masks:
        raise InputError("The lens follows hidden words: hide one on both sides, in models that predict them.")
    record = {
        "other": other.name,
        "show": args.show,
        "sides": [_side(one, read, args.top_k) for one, read in sides],
        "masks": [_matched(mask, *both) for mask, both in zip(found.masks, lenses)],
        "unmatched": [found.unmatched_a, found.unmatched_b],
        "differences": {
            "is_next": found.is_next_difference,
            "in_order": found.in_order_difference,
            "replaced": found.replaced_difference,
        },
        "common_tokens": found.common_tokens,
        "folded": found.case_folded,
        "layers": found.layers,
        "attention": _difference(sides, found.layers, args),
    }
    return record, _compared_rows(record), "<><><"


def _side(bert, trace, top_k):
    """What one side says by itself."""
    from bert_tf.explain import class_lens, fill_mask, summarise_heads
    from bert_tf.explain.attribution.target import classifier_settings

    answers = fill_mask(trace, bert.tokenizer, top_k) if trace.masks and trace.logits is not None else ()
    lens = class_lens(bert, trace) if classifier_settings(bert) else None
    return {
        "model": bert.name,
        "text_a": trace.text_a,
        "text_b": trace.text_b,
        "tokens": trace.tokens,
        "masks": [{"position": one.position, "predictions": predictions_record(one)} for one in answers],
        "is_next": trace.nsp and trace.nsp.is_next,
        "in_order": trace.sop and trace.sop.in_order,
        "classes": lens and dict(zip(lens.labels, lens.values[-1])),
        "classes_by_layer": lens and lens.values,
        "replaced": trace.replaced,
        "entropy": summarise_heads(trace).entropy.mean(axis=1),
    }


def _lenses(sides, found):
    """A pair of `Lens`es for every mask that both have."""
    from bert_tf.explain import logit_lens

    pairs = []
    for mask in found.masks:
        places = (mask.position_a, mask.position_b)
        pairs.append([logit_lens(bert, trace, (at,), 1) for (bert, trace), at in zip(sides, places)])
    return pairs


def _matched(mask, *lenses):
    return {
        "positions": [mask.position_a, mask.position_b],
        "predictions": [
            [{"token": one.token, "probability": one.probability} for one in said]
            for said in (mask.predictions_a, mask.predictions_b)
        ],
        "overlap": mask.overlap,
        "divergence_bits": mask.divergence,
        "coverage": [mask.coverage_a, mask.coverage_b],
        "lens": [
            {
                "answer": lens.answers[0].token,
                "answer_probabilities": lens.answer_probabilities[0],
                "likeliest": [tokens[0] for tokens in lens.predicted_tokens[0]],
            }
            for lens in lenses
        ],
    }


def _difference(sides, layers, args):
    """One attention map less the other at the same relative depth; None of inputs of other lengths."""
    traces = [trace for _, trace in sides]
    own, other = next((pair for pair in layers if pair[0] == args.layer), layers[-1])
    if args.layer is not None and own != args.layer:
        raise InputError(f"There is no layer {args.layer}: the first model's are numbered 0 to {layers[-1][0]}.")
    heads = min(trace.attentions.shape[1] for trace in traces)
    if args.head is not None and not 0 <= args.head < heads:
        raise InputError(f"There is no head {args.head}: both models have the heads 0 to {heads - 1}.")
    if traces[0].length != traces[1].length:
        if args.show == "difference":
            lengths = f"{traces[0].length} and {traces[1].length}"
            raise InputError(f"The difference needs inputs of as many tokens; these have {lengths}.")
        return None
    chosen = slice(None) if args.head is None else slice(args.head, args.head + 1)
    one, two = (trace.attentions[at, chosen].mean(axis=0) for trace, at in zip(traces, (own, other)))
    return {"layers": [own, other], "head": args.head, "difference": one - two}


def _compared_rows(record):
    one, other = record["sides"]
    rows = [("token", one["model"], "", other["model"], "")]
    for mask in record["masks"]:
        at = "|".join(dict.fromkeys(map(str, mask["positions"])))
        for a, b in zip(*mask["predictions"]):
            rows.append((at, a["token"], percent(a["probability"]), b["token"], percent(b["probability"])))
        rows.append((at, "divergence", f"{mask['divergence_bits']:.3f} bits", "shared", percent(mask["overlap"])))
    for name, what in (("is_next", "follows"), ("in_order", "in order")):
        if (one[name], other[name]) != (None, None):
            said = ("-" if side[name] is None else percent(side[name]) for side in (one, other))
            rows.append(("", what, next(said), what, next(said)))
    if record["differences"]["replaced"] is not None:
        rows.append(("", "replaced", "differ by", percent(record["differences"]["replaced"]), "a token"))
    both = [list((side["classes"] or {}).items()) for side in (one, other)]
    for place in range(max(map(len, both))):
        pairs = (side[place] if place < len(side) else ("", None) for side in both)
        cells = [(label, "" if value is None else f"{value:.3f}") for label, value in pairs]
        rows.append(("", *cells[0], *cells[1]))
    return rows


def similarity(bert, trace, args):
    """How alike the layers of two models are on the words of the text, or of a file."""
    from bert_tf.explain import chance_similarity, layer_similarity
    from bert_tf.explain.representations.layer_similarity import traces_of
    from bert_tf.inference.bert import load

    other = load(args.other, precision=args.precision)
    if trace is not None:
        traces = [trace], [other.trace(args.text_a, args.text_b, args.mask)]
    else:
        readers = [functools.partial(model.trace, attentions=False) for model in (bert, other)]
        with Progress(args) as progress:
            traces = traces_of(readers, [(row.text_a, row.text_b) for row in args.texts], progress=progress)
    values = layer_similarity(*traces, measure=args.measure)
    rows = [("state", *map(str, range(values.shape[1])))]
    rows += [
        (str(state), *("-" if math.isnan(value) else f"{value:.2f}" for value in row))
        for state, row in enumerate(values)
    ]
    words = sum(len(one.words()) for one in traces[0])
    record = {
        "other": other.name,
        "measure": args.measure,
        "texts": len(traces[0]),
        "words": words,
        "by_chance": chance_similarity(*traces, args.measure),
        args.measure: values,
    }
    return record, rows, ">" * len(rows[0])


def _check_compare(args):
    if not (args.other or args.other_text):
        raise InputError("Give --other M, another model, or --other-text TEXT, another text.")
    if args.other_text:
        if len(args.other_text) > 2:
            raise InputError(f"--other-text takes one text or two, not {len(args.other_text)}.")
        checked_pair(*(*args.other_text, None)[:2])
    elif args.other_mask:
        raise InputError("--other-mask hides words of --other-text, and there is none.")


def _add_compare(kind):
    kind.add_argument("--other", metavar="M", help="name or folder of another model")
    kind.add_argument("--other-text", nargs="+", metavar="TEXT", help="another text, or a pair, in place of the first")
    kind.add_argument(
        "--other-mask", nargs="+", action="extend", default=[], metavar="WORD", help="words to mask in it"
    )
    kind.add_argument(
        "--show", choices=_SHOWN, default="answers", metavar="F", help=f"figure: {', '.join(_SHOWN)} (default answers)"
    )
    kind.add_argument(
        "--layer", type=int, metavar="L", help="whose attention is subtracted, of the first model (default: the last)"
    )
    kind.add_argument("--head", type=int, metavar="H", help="of that layer (default: the mean of all)")


def _add_similarity(kind):
    kind.add_argument("--other", required=True, metavar="M", help="name or folder of the other model")
    kind.add_argument(
        "--measure", choices=_MEASURES, default="cka", metavar="S", help=f"{', '.join(_MEASURES)} (default cka)"
    )


KINDS = {
    "compare": Kind(compare, "two models on one text, or two texts: where they differ", _add_compare, _check_compare),
    "similarity": Kind(
        similarity, "how alike the layers of two models are on a text or a file", _add_similarity, texts="or file"
    ),
}
