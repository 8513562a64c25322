"""The kinds of `explain` that put two models side by side."""

import math

from bert_tf.cli.explain_shared import Kind


def similarity(bert, trace, args):
    """Linear CKA between the layers of two models on the text's words."""
    from bert_tf.bert import load
    from bert_tf.explain import layer_similarity

    other = load(args.other, precision=args.precision)
    values = layer_similarity(trace, other.trace(args.text_a, args.text_b, args.mask))
    rows = [("state", *map(str, range(values.shape[1])))]
    rows += [
        (str(state), *("-" if math.isnan(value) else f"{value:.2f}" for value in row))
        for state, row in enumerate(values)
    ]
    return {"other": other.name, "cka": values}, rows, ">" * len(rows[0])


def _add_similarity(kind):
    kind.add_argument("--other", required=True, metavar="M", help="name or folder of the other model")


KINDS = {
    "similarity": Kind(similarity, "how alike the layers of two models are on a text", _add_similarity),
}
