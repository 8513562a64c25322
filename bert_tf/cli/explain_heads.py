"""What the kinds of `explain` about single heads compute; see `explain_kinds`."""

from bert_tf.cli.explain_kinds import head_of
from bert_tf.cli.render import percent
from bert_tf.explain.errors import InputError


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
