"""The kinds of `explain` that ask about every row of a file."""

from dataclasses import asdict

from bert_tf.cli.explain.shared import Kind, Progress, data_of, predictions_record, read_file, state_name
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError
from bert_tf.explain.datasets.text_rows import (
    HIDE,
    file_kind,
    labelled,
    parse_row_numbers,
    read_rows,
)

# As `bert_tf.explain.datasets.row_predictions.ASK`, `row_map.POOLINGS` and `projection.WAYS`, which are imported only when needed.
_ASK = ("masks", "next", "order", "replaced", "classes", "perplexity")
_POOLINGS, _WAYS = ("mean", "first"), ("pca", "umap", "tsne")
_CLAIMS = {"is_next": "follows", "in_order": "in order"}


def dataset(bert, trace, args):
    """Hidden words, next sentence or sentence order, replaced tokens, classes and pseudo-perplexity of every row."""
    from bert_tf.explain import score_rows, summarise_classes, summarise_rows
    from bert_tf.explain.attribution.target import classifier_settings
    from bert_tf.explain.datasets.class_curves import check_class

    if args.show == "curve":
        check_class(bert, args.label)
    plane = _plane(bert, args) if args.show == "map" else None
    with Progress(args) as progress:
        found = score_rows(bert, args.texts, tuple(args.ask), args.hide, args.top_k, progress)
    classes = summarise_classes(bert, found) if "classes" in args.ask and classifier_settings(bert) else None
    record = {
        "asked": args.ask,
        "hide": args.hide,
        "summary": asdict(summarise_rows(found)),
        "classes": classes and asdict(classes),
        "rows": [_scored(one) for one in found],
        "subsets": {name: _subset(bert, found, rows, classes) for name, rows in args.subsets.items()},
    }
    if plane is not None:
        record["map"], rows = _map(plane, found, args)
        return record, rows, ">" * (len(rows[0]) - 2) + "<<" if args.near is None else "><"
    if args.show == "curve":
        record["curve"], rows = _curve(bert, found, args.label)
        return record, rows, ">>>>>"
    return record, _answers(bert, found), "><<>>><<><"


def _curve(bert, found, label):
    """(a record of one class against the rest, the lines of a table of its thresholds)."""
    from bert_tf.explain import class_curve

    curve = class_curve(bert, found, label)
    record = {
        "label": curve.label,
        "rows": len(curve.is_positive),
        "average_precision": curve.average_precision,
        "auc": curve.auc,
        "best": curve.best,
        **curve.columns,
    }
    lines = [("from", "precision", "recall", "F1", "false positives")]
    lines += [
        (percent(at), percent(precision), percent(recall), f"{f1:.3f}", percent(wrong))
        for at, precision, recall, f1, wrong in zip(*curve.columns.values())
    ]
    return record, lines


def _subset(bert, found, numbers, classes):
    """The rows with some numbers together, as a dict."""
    from bert_tf.explain import summarise_classes, summarise_rows

    own = [one for one in found if one.row.number in numbers]
    judged = None if classes is None else asdict(summarise_classes(bert, own))
    return {"rows": numbers, "summary": asdict(summarise_rows(own)), "classes": judged}


def _subset_of(text, numbers):
    """(name, row numbers) of "NAME=1-4,7"."""
    name, equals, rows = text.partition("=")
    if not (name.strip() and equals):
        raise InputError(f"--subset takes NAME=ROWS, such as short=1-4,7; not {text!r:.40}.")
    found = parse_row_numbers(rows, numbers)
    if not found:
        raise InputError(f"The file has none of the rows {rows!r:.40}.")
    return name.strip(), found


def _answers(bert, found):
    """The lines of a table of what was answered."""
    claim = "in_order" if "sop" in bert.heads else "is_next"
    rows = [("row", "hidden", "guess", "rank", _CLAIMS[claim], "suspected", "label", "class", "perplexity", "text")]
    for one in found:
        masks, share, worst = one.masks, getattr(one, claim), one.most_likely_replaced
        rows.append(
            (
                str(one.row.number),
                " ".join(mask.original or "[MASK]" for mask in masks),
                " ".join(mask.predictions[0].token for mask in masks),
                " ".join("-" if mask.original_rank is None else f"{mask.original_rank:,}" for mask in masks),
                "-" if share is None else percent(share),
                "-" if worst is None else f"{worst[0]} {percent(worst[1])}",
                one.row.label or "-",
                _class(one),
                "-" if one.perplexity is None else f"{one.perplexity:,.1f}",
                f"{one.row.text_a:.60}",
            )
        )
    return rows


def _plane(bert, args):
    """The rows' vectors laid out, before they are asked: `RowVectors`, and a record of all but their colours."""
    from bert_tf.explain import nearest_rows, project_to_plane, row_vectors
    from bert_tf.explain.datasets.row_map import SAME_FIRST, available_row_attributes, constant_first_token

    layers, pooling = bert.config.num_hidden_layers, args.pooling or _POOLINGS[0]
    layer = layers if args.layer is None else args.layer
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    _check_colour(args.colour, available_row_attributes(bert, args.texts, args.ask))
    with Progress(args) as progress:
        read = row_vectors(bert, args.texts, pooling, progress, args.ask)
    vectors, rows = read.vectors[layer], [args.texts[place] for place in read.places]
    if constant_first_token(vectors, pooling):
        raise InputError(SAME_FIRST)
    numbers, near = [row.number for row in rows], None
    if args.near is not None:
        if args.near not in numbers:
            raise InputError(f"Row {args.near} cannot be read, so nothing is near to it.")
        near = nearest_rows(vectors, numbers.index(args.near), args.top_k)
    way = args.by or _WAYS[0]
    places, shares = project_to_plane(vectors, way, args.dimensions or 2)
    return read, {
        "layer": layer,
        "pooling": pooling,
        "method": way,
        "rows": numbers,
        "texts": [row.text for row in rows],
        "coordinates": places,
        "shares_of_variance": shares,
        "near": args.near,
        "nearest": near and [{"row": numbers[index], "cosine": cosine} for index, cosine in near],
    }


def _map(plane, found, args):
    """(the record of a plane with what is known of its rows, the lines of a table of it)."""
    from bert_tf.explain import row_attributes

    (read, record), known = plane, row_attributes(found)
    name = args.colour or next(iter(known))
    _check_colour(name, known)
    values = [known[name][place] for place in read.places]
    record |= {"colour": name, "values": values}
    texts = dict(zip(record["rows"], record["texts"]))
    if args.near is not None:
        near = [(f"{one['cosine']:.3f}", f"{one['row']}: {texts[one['row']]:.60}") for one in record["nearest"]]
        return record, [("cosine", "row"), *near]
    written = [value if isinstance(value, str) else "-" if value is None else f"{value:.4g}" for value in values]
    axes = "xyz"[: record["coordinates"].shape[1]]
    lines = [("row", *axes, name, "text")]
    lines += [
        (str(number), *(f"{value:.3f}" for value in place), value, f"{text:.60}")
        for (number, text), place, value in zip(texts.items(), record["coordinates"], written)
    ]
    return record, lines


def _check_colour(name, known):
    if name is not None and name not in known:
        raise InputError(f"--colour takes what is known of these rows: {', '.join(known)}; not {name!r:.40}.")


def _class(one):
    if one.predicted is None:
        return "-"
    if isinstance(one.predicted, float):
        return f"{one.predicted:.3f}"
    sure = one.predicted_probability
    return one.predicted or "none" if sure is None else f"{one.predicted} {percent(sure)}"


def _scored(one):
    return {
        **_row(one),
        "tokens": one.tokens,
        "cut": one.cut,
        "masks": [
            {
                "position": mask.position,
                "original": mask.original,
                "original_rank": mask.original_rank,
                "original_probability": mask.original_probability,
                "predictions": predictions_record(mask),
            }
            for mask in one.masks
        ],
        "is_next": one.is_next,
        "in_order": one.in_order,
        "replaced": one.replaced and [{"token": token, "score": score} for token, score in one.replaced],
        "label": one.row.label,
        "said": one.task_prediction,
        "perplexity": one.perplexity,
        "log_likelihood": one.log_likelihood,
        "problem": one.problem,
    }


def _row(one):
    return {"row": one.row.number, "text_a": one.row.text_a, "text_b": one.row.text_b}


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


def _check_ask(args):
    unknown = [one for one in args.ask if one not in _ASK]
    if unknown:
        raise InputError(f"--ask takes {', '.join(_ASK)}; not {unknown[0]!r:.40}.")
    if args.show != "map" and {args.by, args.dimensions, args.pooling, args.near, args.layer, args.colour} != {None}:
        raise InputError("--by, --dimensions, --pooling, --near, --layer and --colour go with --show map.")
    if args.show != "curve" and args.label is not None:
        raise InputError("--label goes with --show curve.")
    if args.show == "curve" and "classes" not in args.ask:
        raise InputError("--show curve is of classes: put them into --ask.")
    read_file(args)
    numbers = [row.number for row in args.texts]
    args.subsets = dict(_subset_of(one, numbers) for one in args.subset)
    if args.near is not None and args.near not in [row.number for row in args.texts]:
        raise InputError(f"There is no row {args.near} in the file.")


def _add_hide(kind):
    kind.add_argument(
        "--hide",
        choices=HIDE,
        default="random",
        metavar="W",
        help="what the file names (given), a word of each row (random, the default), or the last",
    )


def _add_dataset(kind):
    kind.add_argument(
        "--ask",
        nargs="+",
        default=_ASK[:-1],
        metavar="A",
        help=f"{', '.join(_ASK)}; the last takes as many passes as tokens (default: all but it)",
    )
    _add_hide(kind)
    kind.add_argument(
        "--subset",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=ROWS",
        help="rows that are also told together, by their numbers, such as short=1-4,7 (--json)",
    )
    kind.add_argument(
        "--show",
        choices=("answers", "map", "curve"),
        default="answers",
        metavar="F",
        help="answers (default); a map: every row's vector as a point; or a curve: one class at every threshold",
    )
    kind.add_argument("--label", metavar="CLASS", help="that of the curve (default: the last)")
    kind.add_argument("--by", choices=_WAYS, metavar="W", help="how the map is laid out: pca (default), umap or tsne")
    kind.add_argument("--dimensions", type=int, choices=(2, 3), metavar="K", help="of the map, 2 (default) or 3")
    kind.add_argument("--pooling", choices=_POOLINGS, metavar="P", help="a row's vector: mean (default) or first token")
    kind.add_argument("--layer", type=int, metavar="L", help="after which layer, 0 what goes in (default: the last)")
    kind.add_argument("--colour", metavar="C", help="what colours the map, such as label, predicted, right, is_next")
    kind.add_argument("--near", type=int, metavar="ROW", help="list the rows of the map nearest to this one, by cosine")


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
    "dataset": Kind(
        dataset,
        "hidden words, pairs, replaced tokens and classes of every row of a file",
        _add_dataset,
        _check_ask,
        **_FILE,
    ),
    "pairs": Kind(pairs, "which text of each pair of a file is likelier", _add_pairs, _check_pairs, **_FILE),
}
