"""The kinds of `explain` that ask about every row of a file."""

from bert_tf.cli.explain.shared import Kind, Progress, data_of, read_file, state_name
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError
from bert_tf.explain.datasets.text_rows import (
    HIDE,
    file_kind,
    labelled,
    read_rows,
)


def pairs(bert, trace, args):
    """Which text of each row's pair is likelier; the first is the one that ought to be."""
    from bert_tf.explain import minimal_pairs

    with Progress(args) as progress:
        asked = [(row.text_a, row.text_b) for row in args.texts]
        found = minimal_pairs(bert, asked, not args.single_tokens, progress)
    record = {
        "preferred": sum(pair.preferred for pair in found) / len(found),
        "pairs": [
            {
                "row": row.number,
                "good": row.text_a,
                "bad": row.text_b,
                "good_total": pair.good.total,
                "bad_total": pair.bad.total,
                "margin": pair.margin,
                "preferred": pair.preferred,
            }
            for row, pair in zip(args.texts, found)
        ],
    }
    rows = [("row", "margin", "first", "second")]
    rows += [
        (str(one["row"]), f"{one['margin']:+.3f}", f"{one['good']:.60}", f"{one['bad']:.60}") for one in record["pairs"]
    ]
    return record, rows, ">><<"


def concepts(bert, trace, args):
    """Whether an answer hangs on what some sentences have in common, after every layer."""
    from bert_tf.explain import concept_test

    concept, others = ([row.text_a for row in rows] for rows in (args.with_it, args.without))
    of, answer = _concept_answer(args)
    with Progress(args) as progress:
        found = concept_test(bert, args.texts, concept, others, of, answer, args.hide, args.runs, progress)
    lines = [("layer", "score", "±", "chance", "±", "p", "accuracy", "differs")]
    for layer, (scores, chance) in enumerate(zip(found.scores, found.chance)):
        lines.append(
            (
                state_name(layer),
                *(percent(one) for side in (scores, chance) for one in (side.mean(), side.std(ddof=1))),
                f"{found.p_values[layer]:.2g}",
                percent(found.accuracies[layer].mean()),
                "yes" if found.is_significant[layer] else "no",
            )
        )
    record = {
        "target": {"label": found.target.label, "of_value": found.target.is_regression},
        "concept": args.concept,
        "sentences": found.sentences,
        "rows": [args.texts[place].number for place in found.places],
        "scores": found.scores,
        "chance": found.chance,
        "p_values": found.p_values,
        "accuracies": found.accuracies,
        "chance_accuracies": found.chance_accuracies,
        "accuracy_p_values": found.accuracy_p_values,
        "differs": found.is_significant,
        "slopes": found.slopes,
    }
    return record, lines, ">>>>>>><"


def _concept_answer(args):
    """(what the answer is of, the answer), as `concept_test` takes them."""
    if args.target is not None:
        return "word", args.target
    if args.next_sentence:
        return "next", "NotNext" if args.opposite else "IsNext"
    if args.sentence_order:
        return "order", "swapped" if args.opposite else "in order"
    return "class", args.label


def _check_concepts(args):
    given = [
        name
        for name, there in {
            "--target": args.target is not None,
            "--next-sentence": args.next_sentence,
            "--sentence-order": args.sentence_order,
            "--label": args.label is not None,
        }.items()
        if there
    ]
    if len(given) > 1:
        raise InputError(f"One answer is tested at a time: give only one of {' and '.join(given)}.")
    if args.opposite and given not in (["--next-sentence"], ["--sentence-order"]):
        raise InputError("--opposite goes with --next-sentence or --sentence-order.")
    if args.runs < 2:
        raise InputError(f"--runs must be at least 2, not {args.runs}.")
    read_file(args)
    if args.labelled is not None:
        args.texts = labelled(args.texts, args.labelled)
    args.with_it, args.without = (
        read_rows(data_of(path), file_kind(path)).rows for path in (args.concept, args.against)
    )


def _check_pairs(args):
    read_file(args)
    alone = next((row.number for row in args.texts if row.text_b is None), None)
    if alone is not None:
        raise InputError(f"Line {alone} has one text only; a minimal pair is two, with a tab between them.")


def _add_hide(kind):
    kind.add_argument(
        "--hide",
        choices=HIDE,
        default="random",
        metavar="W",
        help="what the file names (given), a word of each row (random, the default), or the last",
    )


def _add_pairs(kind):
    kind.add_argument("--single-tokens", action="store_true", help="mask no later pieces of a token's word with it")


def _add_concepts(kind):
    kind.add_argument("--concept", required=True, metavar="FILE", help="sentences that have the concept, one a line")
    kind.add_argument(
        "--against", required=True, metavar="FILE", help="sentences at random, at least twice as many as are compared"
    )
    kind.add_argument("--labelled", metavar="LABEL", help="ask only about the rows of --input that have this label")
    kind.add_argument("--label", metavar="CLASS", help="of a fine-tuned model: this class (default: the first)")
    kind.add_argument("--target", metavar="TOKEN", help="this word at each row's first mask, instead")
    kind.add_argument("--next-sentence", action="store_true", help="that the second text follows, instead")
    kind.add_argument("--sentence-order", action="store_true", help="that the texts are in order (ALBERT), instead")
    kind.add_argument("--opposite", action="store_true", help="that it does not follow, or that they are swapped")
    runs = "classifiers of each kind (default 20; of fewer nothing can differ)"
    kind.add_argument("--runs", type=int, default=20, metavar="N", help=runs)
    _add_hide(kind)


_FILE = {"texts": "file", "masks": False, "traced": False}
KINDS = {
    "concepts": Kind(
        concepts,
        "whether an answer hangs on what some sentences have in common (TCAV), after every layer",
        _add_concepts,
        _check_concepts,
        **_FILE,
    ),
    "pairs": Kind(pairs, "which text of each pair of a file is likelier", _add_pairs, _check_pairs, **_FILE),
}
