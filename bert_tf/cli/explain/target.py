"""The answer that an analysis explains: the options that name it, and its `Target`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bert_tf.errors import InputError

if TYPE_CHECKING:
    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


def add_target(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name the answer to an `argparse` parser."""
    parser.add_argument(
        "--target", metavar="TOKEN", help="the token to explain (default: the first prediction at the mask)"
    )
    parser.add_argument("--position", type=int, metavar="P", help="position of the mask (default: the first mask)")
    parser.add_argument(
        "--replaced",
        action="store_true",
        help="explain instead that the token at --position is replaced (ELECTRA; default: the token with the "
        "highest score)",
    )
    parser.add_argument(
        "--next-sentence", action="store_true", help="explain instead that the second text follows the first"
    )
    parser.add_argument(
        "--sentence-order", action="store_true", help="explain instead that the two texts are in order (ALBERT)"
    )
    parser.add_argument(
        "--opposite",
        action="store_true",
        help="explain the opposite: the second text does not follow, the texts are swapped, or the token is original",
    )
    parser.add_argument(
        "--label",
        metavar="CLASS",
        help="explain this class of a fine-tuned model (default without a mask: the most probable class)",
    )


def check_target(args: argparse.Namespace) -> None:
    """Checks, before the model is loaded, that the options name one answer at most.

    Raises: InputError if they name several, or if --opposite is set without the answer it belongs to.
    """
    kinds = {
        "--next-sentence": args.next_sentence,
        "--sentence-order": args.sentence_order,
        "--replaced": args.replaced,
        "--label": args.label is not None,
        "--target or --position": args.target is not None or (args.position is not None and not args.replaced),
    }
    used = [name for name, is_used in kinds.items() if is_used]
    if len(used) > 1:
        raise InputError(f"One answer is explained at a time: give only one of {' and '.join(used)}.")
    if args.opposite and used not in (["--next-sentence"], ["--sentence-order"], ["--replaced"]):
        raise InputError("--opposite goes with --next-sentence, --sentence-order or --replaced.")


def target_of(bert: Bert, trace: Trace, args: argparse.Namespace) -> Target:
    """The `Target` that the options name.

    Without options it is the first prediction at the first mask; for a model that classifies and an input without a
    mask it is the most probable class.

    Args:
        bert: `Bert`. The model.
        trace: `Trace`. The forward pass that is explained.
        args: argparse.Namespace. The parsed options.

    Returns: `Target`.
    """
    from bert_tf.explain import (
        class_target,
        mask_target,
        next_sentence_target,
        replaced_target,
        sentence_order_target,
    )
    from bert_tf.explain.attribution.target import classifier_settings

    if args.next_sentence:
        return next_sentence_target(bert, trace, not args.opposite)
    if args.sentence_order:
        return sentence_order_target(bert, trace, not args.opposite)
    if args.replaced:
        return replaced_target(bert, trace, args.position, not args.opposite)
    has_token = args.target is not None or args.position is not None or trace.masks
    if args.label is not None or (classifier_settings(bert) and not has_token):
        return class_target(bert, trace, args.label)
    return mask_target(bert, trace, args.position, args.target)
