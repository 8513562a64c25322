"""The kinds of `explain` that put two models, or two texts, side by side."""

import functools
import math

from bert_tf.cli.explain.shared import Kind, Progress

_MEASURES = ("cka", "svcca", "pwcca")


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


def _add_similarity(kind):
    kind.add_argument("--other", required=True, metavar="M", help="name or folder of the other model")
    kind.add_argument(
        "--measure", choices=_MEASURES, default="cka", metavar="S", help=f"{', '.join(_MEASURES)} (default cka)"
    )


KINDS = {
    "similarity": Kind(
        similarity, "how alike the layers of two models are on a text or a file", _add_similarity, texts="or file"
    ),
}
