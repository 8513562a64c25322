"""The kinds of `explain` about attention and what heads do."""

import numpy as np

from bert_tf.analysis import head_of
from bert_tf.cli.explain.shared import Kind, Progress, read_file
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError

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
    rows += [(token, f"{score:.3f}", percent(weight)) for token, score, weight in zip(trace.tokens, scores, weights)]
    return record, rows, "<>>"


def methods(bert, trace, args):
    """One token's attention by several methods side by side."""
    from dataclasses import asdict

    from bert_tf.explain import token_attention

    found = asdict(token_attention(bert, trace, args.layer, args.token, args.head))
    place = {name: found.pop(name) for name in ("layer", "head", "position")}
    rows = [(f"{trace.tokens[args.token]} looks at", *found)]
    rows += [(token, *map(percent, shares)) for token, *shares in zip(trace.tokens, *found.values())]
    return {**place, "tokens": trace.tokens, "methods": found}, rows, "<" + ">" * len(found)


def heads(bert, trace, args):
    """What every head does on the text, or over a file, and its cluster; over CoNLL-U which relations it follows."""
    from bert_tf.explain import cluster_heads, profile_heads, profile_trace, syntax_agreement
    from bert_tf.explain.attention.head_profile import MEASURES

    if trace is not None:
        found = profile_trace(trace)
    else:
        with Progress(args) as progress:
            found = profile_heads(bert, [(row.text_a, row.text_b) for row in args.texts], progress=progress)
    measures = {name: getattr(found.summary, name) for name in MEASURES}
    record = {} if trace is None else {"tokens": trace.tokens}
    record |= {"texts": found.texts, "tokens_read": found.tokens}
    if args.parsed:
        with Progress(args) as progress:
            syntax = syntax_agreement(bert, args.parsed, progress)
        measures["syntax"] = syntax.overall.best_direction
        record |= {"sentences": syntax.sentences, "too_long": syntax.skipped, "relations": _relations(syntax)}
    layers, count = found.summary.entropy.shape
    clusters = cluster_heads(found.distances).reshape(layers, count)
    rows = [("head", *(name.removesuffix("_share") for name in measures), "cluster")]
    rows += [
        (
            f"{layer}.{head}",
            *(f"{values[layer, head]:.2f}" for values in measures.values()),
            str(clusters[layer, head]),
        )
        for layer in range(layers)
        for head in range(count)
    ]
    for name, one in record.get("relations", {}).items():
        best = ".".join(map(str, one["best_head"]))
        rows.append((name, best, percent(one["best_share"]), *[""] * (len(rows[0]) - 3)))
    return {**record, "measures": measures, "clusters": clusters}, rows, "<" + ">" * (len(rows[0]) - 1)


def _relations(syntax):
    """A dict for each relation: the share of every head, and the head that follows it best."""
    found = {}
    for name, one in syntax.relations.items():
        shares = one.best_direction
        best = np.unravel_index(shares.argmax(), shares.shape)
        found[name] = {
            "words": one.count,
            "dependent_looks": one.dependent_to_head,
            "head_looks": one.head_to_dependent,
            "best_head": tuple(int(part) for part in best),
            "best_share": shares[best],
            "offset": one.offset,
            "offset_share": one.offset_accuracy,
        }
    return found


def _read_texts(args):
    """--input into `args.texts`; of a CoNLL-U file also its trees, into `args.parsed`."""
    args.parsed = ()
    if args.input is not None:
        read_file(args)
        args.parsed = tuple(row.parsed for row in args.texts if row.parsed is not None)


def changed(bert, trace, args):
    """How far fine-tuning moved every head's attention on the text."""
    from bert_tf.explain.attention.attention_divergence import attention_divergence
    from bert_tf.inference.bert import load

    name = args.before or (bert.task and bert.task.settings.base_model)
    if name is None:
        raise InputError(f"{bert.name} does not say what it was fine-tuned from: give --before M.")
    before = load(name, precision=args.precision)
    found = attention_divergence(before.trace(args.text_a, args.text_b, args.mask), trace)
    order = np.argsort(-found, axis=None, kind="stable")[: args.top_k]
    rows = [("head", "bits")]
    for layer, head in zip(*np.unravel_index(order, found.shape)):
        rows.append((f"{layer}.{head}", f"{found[layer, head]:.4f}"))
    return {"before": before.name, "tokens": trace.tokens, "bits": found}, rows, "<>"


def _add_attention(kind):
    kind.add_argument(
        "--method",
        choices=_MAPS,
        default="rollout",
        metavar="M",
        help=f"{', '.join(_MAPS)} (default rollout)",
    )


def _add_neuron(kind):
    kind.add_argument("--head", default="0.0", metavar="L.H", help="layer and head, from 0 (default 0.0)")
    kind.add_argument("--token", type=int, default=1, metavar="P", help="position of the token that looks (default 1)")


def _add_methods(kind):
    kind.add_argument("--layer", type=int, default=0, metavar="L", help="layer, from 0 (default 0)")
    kind.add_argument("--head", type=int, metavar="H", help="head, from 0 (default: all of the layer together)")
    kind.add_argument("--token", type=int, default=1, metavar="P", help="position of the token that looks (default 1)")


def _add_changed(kind):
    kind.add_argument(
        "--before", metavar="M", help="name or folder of the model before (default: the one it says it came from)"
    )


KINDS = {
    "attention": Kind(
        attention,
        "which token looks at which, through all layers or weighted by what it moves",
        _add_attention,
    ),
    "neuron": Kind(neuron, "how the attention weights of one token in one head come about", _add_neuron),
    "methods": Kind(methods, "one token's attention by several methods side by side", _add_methods),
    "heads": Kind(
        heads,
        "what every head does on a text or a file; over CoNLL-U also which relations it follows",
        check=_read_texts,
        texts="or file",
    ),
    "changed": Kind(changed, "how far fine-tuning moved each head's attention", _add_changed),
}
