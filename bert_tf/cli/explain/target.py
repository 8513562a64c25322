"""The answer that a kind of `explain` is about: its options, and the `Target` that they name."""

from bert_tf.errors import InputError


def add_target(kind):
    """The options that name the answer."""
    kind.add_argument("--target", metavar="TOKEN", help="the token to explain (default: the likeliest at the mask)")
    kind.add_argument("--position", type=int, metavar="P", help="where it stands (default: the first mask)")
    kind.add_argument(
        "--replaced",
        action="store_true",
        help="explain that the token at --position is replaced (ELECTRA; default: the most suspected), instead",
    )
    kind.add_argument("--next-sentence", action="store_true", help="explain that the second text follows, instead")
    kind.add_argument(
        "--sentence-order", action="store_true", help="explain that the two texts are in order (ALBERT), instead"
    )
    kind.add_argument(
        "--opposite",
        action="store_true",
        help="that it does not follow, that the texts are swapped, or that the token is original",
    )
    kind.add_argument(
        "--label",
        metavar="CLASS",
        help="explain this class of a fine-tuned model (default without a mask: the likeliest)",
    )


def check_target(args):
    """Refuse more than one answer, before the model is loaded."""
    kinds = {
        "--next-sentence": args.next_sentence,
        "--sentence-order": args.sentence_order,
        "--replaced": args.replaced,
        "--label": args.label is not None,
        "--target or --position": args.target is not None or (args.position is not None and not args.replaced),
    }
    given = [name for name, is_given in kinds.items() if is_given]
    if len(given) > 1:
        raise InputError(f"One answer is explained at a time: give only one of {' and '.join(given)}.")
    if args.opposite and given not in (["--next-sentence"], ["--sentence-order"], ["--replaced"]):
        raise InputError("--opposite goes with --next-sentence, --sentence-order or --replaced.")


def target_of(bert, trace, args):
    """The `Target` that the options name: a class where the model classifies and no mask is there to be explained."""
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
    asked = args.target is not None or args.position is not None or trace.masks
    if args.label is not None or (classifier_settings(bert) and not asked):
        return class_target(bert, trace, args.label)
    return mask_target(bert, trace, args.position, args.target)
