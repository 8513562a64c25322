"""The kinds of `explain` about attention and what heads do."""

import numpy as np

from bert_tf.cli.explain_shared import Kind, Progress, head_of
from bert_tf.cli.render import percent
from bert_tf.explain.errors import InputError

_MAPS = ("raw", "rollout", "flow", "norms", "effective")


def attention(bert, trace, args):
    """Which token looks at which, a layer: raw means, rollout, flow, norms, or effective attention."""
    from bert_tf.explain import attention_rollout, effective_attention, norm_weighted_attention

    maps = {
        "raw": lambda: trace.attentions.mean(axis=1),
        "rollout": lambda: attention_rollout(trace),
        "flow": lambda: _flow(trace, args),
        "norms": lambda: norm_weighted_attention(bert, trace).layers,
        "effective": lambda: effective_attention(bert, trace).mean(axis=1),
    }[args.method]()
    last = maps[-1]
    rows = [("looks", "most at", args.method)]
    rows += [
        (token, trace.tokens[best], f"{row[best]:.3f}")
        for token, row, best in zip(trace.tokens, last, last.argmax(axis=1))
    ]
    return {"method": args.method, "tokens": trace.tokens, "layers": maps}, rows, "<<>"


def _flow(trace, args):
    from bert_tf.explain import attention_flow

    layers = len(trace.attentions)
    with Progress(args) as progress:
        return np.stack(
            [
                attention_flow(
                    trace, layer, progress=lambda done, total: progress(layer * total + done, layers * total)
                )
                for layer in range(layers)
            ]
        )


def neuron(bert, trace, args):
    """How the weights of one token in one head come about."""
    from bert_tf.explain import head_vectors

    if not 0 <= args.token < trace.length:
        raise InputError(f"There is no token {args.token}: this input has {trace.length}, numbered from 0.")
    layer, head = head_of(args.head)
    vectors = head_vectors(bert, trace, layer, head)
    scores, weights = vectors.scores(args.token), vectors.weights(args.token)
    record = {
        "layer": layer,
        "head": head,
        "token": args.token,
        "tokens": trace.tokens,
        "query_vector": vectors.queries[args.token],
        "keys": vectors.keys,
        "scores": scores,
        "weights": weights,
    }
    rows = [(f"{trace.tokens[args.token]} looks at", "q k / sqrt(d)", "weight")]
    rows += [
        (token, f"{score:.3f}", percent(weight))
        for token, score, weight in zip(trace.tokens, scores, weights)
    ]
    return record, rows, "<>>"


def heads(bert, trace, args):
    """What every head does on the text, and its cluster."""
    from bert_tf.explain import cluster_heads, profile_of_trace
    from bert_tf.explain.head_profile import MEASURES

    found = profile_of_trace(trace)
    measures = {name: getattr(found.summary, name) for name in MEASURES}
    layers, count = found.summary.entropy.shape
    clusters = cluster_heads(found.distances).reshape(layers, count)
    rows = [("head", *(name.removesuffix("_share") for name in MEASURES), "cluster")]
    rows += [
        (
            f"{layer}.{head}",
            *(f"{measures[name][layer, head]:.2f}" for name in MEASURES),
            str(clusters[layer, head]),
        )
        for layer in range(layers)
        for head in range(count)
    ]
    return (
        {"tokens": trace.tokens, "measures": measures, "clusters": clusters},
        rows,
        "<" + ">" * (len(MEASURES) + 1),
    )


def _add_attention(kind):
    kind.add_argument(
        "--method",
        choices=_MAPS,
        default="rollout",
        metavar="M",
        help=f"{', '.join(_MAPS)} (default rollout)",
    )


def _add_neuron(kind):
    kind.add_argument(
        "--head", default="0.0", metavar="L.H", help="layer and head, from 0 (default 0.0)"
    )
    kind.add_argument(
        "--token", type=int, default=1, metavar="P", help="position of the token that looks (default 1)"
    )


KINDS = {
    "attention": Kind(
        attention,
        "which token looks at which, through all layers or weighted by what it moves",
        _add_attention,
    ),
    "neuron": Kind(neuron, "how the attention weights of one token in one head come about", _add_neuron),
    "heads": Kind(heads, "what every head does: entropy, distance, where it looks"),
}
