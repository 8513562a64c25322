"""`explain KIND`: why a model answers as it does; each kind is one function of `bert_tf.explain`."""

import json
import math

import numpy as np

from bert_tf.cli import explain_heads, explain_kinds
from bert_tf.cli.files import replacing
from bert_tf.cli.model import add_model_arguments, load_model
from bert_tf.cli.render import table
from bert_tf.explain.errors import checked_pair, checked_text

_METHODS = ("gradient", "integrated", "occlusion")
_PARTS = ("heads", "layers", "feed-forward", "tokens")
_MAPS = ("raw", "rollout", "flow", "norms", "effective")


def add_arguments(parser):
    kinds = parser.add_subparsers(metavar="KIND", required=True, dest="kind")
    for name, (_, help_line, add_own) in KINDS.items():
        kind = kinds.add_parser(name, help=help_line, description=help_line[0].upper() + help_line[1:] + ".")
        kind.add_argument("text_a", metavar="TEXT_A", help='the text; "[MASK]" in it is a mask')
        kind.add_argument("text_b", nargs="?", metavar="TEXT_B", help="a second text")
        add_model_arguments(kind)
        if name != "likelihood":
            kind.add_argument(
                "--mask", nargs="+", action="extend", default=[], metavar="WORD", help="words to mask"
            )
        kind.add_argument(
            "--top-k", type=int, default=5, metavar="K", help="predictions or rows shown (default 5)"
        )
        kind.add_argument("--json", action="store_true", help="print one JSON object, all rows in it")
        kind.add_argument(
            "--html", metavar="FILE", help="also write the figure as one HTML file that needs no network"
        )
        kind.add_argument("--quiet", action="store_true", help="no progress bar")
        if add_own:
            add_own(kind)


def run(args):
    from bert_tf.explain.predictions import check_top_k

    checked_pair(args.text_a, args.text_b)  # before the seconds that loading takes
    check_top_k(args.top_k)
    if getattr(args, "against", None) is not None:
        checked_text(args.against, "--against")
    bert = load_model(args)
    trace = None
    if args.kind != "likelihood":
        trace = bert.trace(args.text_a, args.text_b, args.mask)
    record, rows, aligns = KINDS[args.kind][0](bert, trace, args)
    record = _plain({"model": bert.name, "kind": args.kind, **record})
    if args.html is not None:
        _write_figure(args.html, record)
    if args.json:
        print(json.dumps(record, ensure_ascii=False))
        return 0
    title = bert.name if trace is None else f"{bert.name} · {' '.join(trace.tokens)}"
    print("\n".join([title, *table(rows, aligns)]))
    return 0


def _write_figure(path, record):
    from bert_tf.plots.explained import page_of

    with replacing(path) as file:
        file.write(page_of(record))


def _add_attention(kind):
    kind.add_argument(
        "--method",
        choices=_MAPS,
        default="rollout",
        metavar="M",
        help=f"{', '.join(_MAPS)} (default rollout)",
    )


def _add_lens(kind):
    kind.add_argument(
        "--positions", type=int, nargs="+", metavar="P", help="token positions (default: the masks)"
    )


def _add_target(kind):
    kind.add_argument(
        "--target", metavar="TOKEN", help="the token to explain (default: the likeliest at the mask)"
    )
    kind.add_argument(
        "--next-sentence", action="store_true", help="explain that the second text follows, instead"
    )


def _add_saliency(kind):
    _add_target(kind)
    kind.add_argument(
        "--method",
        choices=_METHODS,
        default="integrated",
        metavar="M",
        help=f"{', '.join(_METHODS)} (default integrated)",
    )
    kind.add_argument(
        "--steps", type=int, default=32, metavar="S", help="gradients taken by integrated (default 32)"
    )
    kind.add_argument("--baseline", metavar="TOKEN", help="stands for nothing: [PAD] or [MASK]")


def _add_ablation(kind):
    kind.add_argument(
        "--heads", nargs="+", action="extend", default=[], metavar="L.H", help="heads to switch off"
    )
    kind.add_argument(
        "--layers", nargs="+", type=int, action="extend", default=[], metavar="L", help="layers"
    )
    kind.add_argument(
        "--feed-forward",
        nargs="+",
        type=int,
        action="extend",
        default=[],
        metavar="L",
        help="layers whose feed-forward block to switch off",
    )
    kind.add_argument(
        "--sweep",
        choices=_PARTS,
        default="heads",
        metavar="PARTS",
        help=f"with none named, each alone of: {', '.join(_PARTS)} (default heads)",
    )


def _add_patching(kind):
    _add_target(kind)
    kind.add_argument("--against", metavar="TEXT", help="another first text with as many tokens")


def _add_counterfactual(kind):
    kind.add_argument(
        "--replace", nargs="+", action="extend", default=[], metavar="OLD=NEW", help="words to replace"
    )


def _add_likelihood(kind):
    kind.add_argument("--against", metavar="TEXT", help="another first text, to see which is likelier")
    kind.add_argument(
        "--single-tokens", action="store_true", help="mask no later pieces of a token's word with it"
    )


def _add_neuron(kind):
    kind.add_argument(
        "--head", default="0.0", metavar="L.H", help="layer and head, from 0 (default 0.0)"
    )
    kind.add_argument(
        "--token", type=int, default=1, metavar="P", help="position of the token that looks (default 1)"
    )


def _add_similarity(kind):
    kind.add_argument("--other", required=True, metavar="M", help="name or folder of the other model")


#: Kind -> (its function in `explain_kinds`, one line of help, what adds its own arguments).
KINDS = {
    "attention": (
        explain_kinds.attention,
        "which token looks at which, through all layers or weighted by what it moves",
        _add_attention,
    ),
    "neuron": (
        explain_heads.neuron,
        "how the attention weights of one token in one head come about",
        _add_neuron,
    ),
    "heads": (explain_heads.heads, "what every head does: entropy, distance, where it looks", None),
    "lens": (explain_kinds.lens, "what the masked-word head would say after each layer", _add_lens),
    "saliency": (explain_kinds.saliency, "which words an answer hangs on", _add_saliency),
    "ablation": (
        explain_kinds.ablation,
        "what changes without some heads, layers or feed-forward blocks",
        _add_ablation,
    ),
    "patching": (
        explain_kinds.patching,
        "where in the model another input turns into another answer",
        _add_patching,
    ),
    "counterfactual": (
        explain_kinds.counterfactual,
        "answers to the input swapped, shortened, with other words",
        _add_counterfactual,
    ),
    "likelihood": (
        explain_kinds.likelihood,
        "how likely a text is, or which of two is likelier",
        _add_likelihood,
    ),
    "vectors": (explain_kinds.vectors, "the input embeddings taken apart, and the nearest words", None),
    "similarity": (
        explain_kinds.similarity,
        "how alike the layers of two models are on a text",
        _add_similarity,
    ),
}


def _plain(value):
    """What `json.dumps` takes; numbers that are none become null."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else round(float(value), 7)
    return int(value) if isinstance(value, np.integer) else value
