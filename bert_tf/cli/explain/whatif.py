"""The kinds of `explain` that ask what if: the text swapped, shortened, with other words; how likely a text is."""

import math

from bert_tf.cli.explain.shared import Kind, Progress, check_against, predictions_record
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError


def counterfactual(bert, trace, args):
    """Swapped, each word left out, only the left or the right context, words replaced."""
    from bert_tf import explain

    variants = [explain.swapped(bert, trace)] if trace.text_b is not None else []
    for mask in trace.masks:
        variants += [explain.left_context(bert, trace, mask), explain.right_context(bert, trace, mask)]
    words = trace.words()
    for old, new in (_replacement(pair) for pair in args.replace):
        word = next((word for word in words if word.text == old), None)
        if word is None:
            raise explain.WordNotFound(f"The word {old!r} is not in the text.")
        variants.append(explain.with_word(bert, trace, word, new))
    unmasked = [word for word in words if not set(word.positions) & set(trace.masks)]
    alone = {source for source in "ab" if sum(word.source == source for word in words) == 1}
    variants += [explain.without_word(bert, trace, word) for word in unmasked if word.source not in alone]
    outcomes = explain.predict_variants(bert, trace, variants, args.top_k)
    found, rows = [], [("what if", "likeliest", "bits", "in order" if "sop" in bert.heads else "follows")]
    for one in outcomes:
        masks = [
            {
                "position": mask.position,
                "predictions": predictions_record(mask),
                "change": change,
                "divergence_bits": divergence,
            }
            for mask, change, divergence in zip(one.masks, one.changes, one.divergences)
        ]
        found.append(
            {
                "label": one.variant.label,
                "tokens": one.variant.tokens,
                "masks": masks,
                "is_next": one.nsp and one.nsp.is_next,
                "is_next_change": one.nsp_change,
                "in_order": one.sop and one.sop.in_order,
                "in_order_change": one.sop_change,
            }
        )
        share = one.nsp.is_next if one.nsp else one.sop and one.sop.in_order
        rows.append(
            (
                one.variant.label,
                " ".join(mask["predictions"][0]["token"] for mask in masks) or "-",
                " ".join(f"{mask['divergence_bits']:.3f}" for mask in masks) or "-",
                "-" if share is None else percent(share),
            )
        )
    return {"tokens": trace.tokens, "variants": found}, rows, "<<>>"


def likelihood(bert, trace, args):
    """How likely each token is given all the others; with --against, which of two texts is likelier."""
    from bert_tf.explain import pseudo_likelihood

    with Progress(args) as progress:
        found = [pseudo_likelihood(bert, args.text_a, args.text_b, not args.single_tokens, progress)]
        if args.against is not None:
            found.append(pseudo_likelihood(bert, args.against, args.text_b, not args.single_tokens, progress))
    texts = [
        {
            "text_a": one.text_a,
            "text_b": one.text_b,
            "tokens": one.tokens,
            "total": one.total,
            "log_probabilities": one.log_probabilities,
            "perplexity": one.perplexity,
        }
        for one in found
    ]
    rows = [
        (token, f"{log:.3f}")
        for one in found
        for token, log in zip(one.tokens, one.log_probabilities)
        if not math.isnan(log)
    ]
    rows += [("total", f"{one.total:.3f}") for one in found]
    margin = found[0].total - found[1].total if len(found) == 2 else None
    return {"texts": texts, "margin": margin}, rows, "<>"


def _replacement(pair):
    old, equals, new = pair.partition("=")
    if not (old and equals and new):
        raise InputError(f"--replace takes OLD=NEW, such as cat=dog; not {pair!r:.40}.")
    return old, new


def _add_counterfactual(kind):
    kind.add_argument("--replace", nargs="+", action="extend", default=[], metavar="OLD=NEW", help="words to replace")


def _add_likelihood(kind):
    kind.add_argument("--against", metavar="TEXT", help="another first text, to see which is likelier")
    kind.add_argument("--single-tokens", action="store_true", help="mask no later pieces of a token's word with it")


KINDS = {
    "counterfactual": Kind(
        counterfactual, "answers to the input swapped, shortened, with other words", _add_counterfactual
    ),
    "likelihood": Kind(
        likelihood,
        "how likely a text is, or which of two is likelier",
        _add_likelihood,
        check_against,
        masks=False,
        traced=False,
    ),
}
