"""The kinds of `explain` that ask why: layer by layer, parts off, their shares, patching."""

import math

import numpy as np

from bert_tf.analysis import head_of
from bert_tf.cli.explain.shared import Kind, Progress, check_against, predictions_record
from bert_tf.cli.explain.target import add_target, check_target, target_of, target_record
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError

_CARRIED = ("state", "attention", "feed-forward", "head")
_READ = ("queries", "keys", "values", "feed-forward")
_PARTS = ("heads", "layers", "feed-forward", "tokens")


def ablation(bert, trace, args):
    """What changes without a part: the parts named, or each of a kind alone."""
    from bert_tf.explain import Ablation, ablate

    if not (args.heads or args.layers or args.feed_forward or args.tokens):
        return _sweep(bert, trace, args)
    heads = tuple(head_of(pair) for pair in args.heads)
    ablation = Ablation(heads, tuple(args.layers), tuple(args.feed_forward), tuple(args.tokens))
    effect = ablate(bert, trace, ablation, args.top_k, attention_shifts=True)
    masks = [
        {
            "position": before.position,
            "before": predictions_record(before),
            "after": predictions_record(after),
            "change": change,
            "divergence_bits": divergence,
        }
        for before, after, change, divergence in zip(effect.before, effect.after, effect.changes, effect.divergences)
    ]
    rows = [("token", "before", "", "after", "")]
    for mask in masks:
        rows += [
            (
                str(mask["position"]),
                a["token"],
                percent(a["probability"]),
                b["token"],
                percent(b["probability"]),
            )
            for a, b in zip(mask["before"], mask["after"])
        ]
    others = _other_answers(effect)
    for name, what in (("is_next", "follows"), ("in_order", "in order")):
        before, after = others[f"{name}_before"], others[f"{name}_after"]
        if before is not None:
            rows.append(("", what, percent(before), what, percent(after)))
    if others["classes_before"] is not None:
        number = percent if bert.task.settings.labels else "{:.3f}".format
        for name, share in others["classes_before"].items():
            rows.append(("", name, number(share), name, number(others["classes_after"][name])))
    if others["replaced_before"] is not None:
        rows += [
            (str(place), token, percent(before), "replaced", percent(after))
            for place, (token, before, after) in enumerate(
                zip(trace.tokens, others["replaced_before"], others["replaced_after"])
            )
        ]
    for place in np.argsort(-effect.attention_shifts, axis=None, kind="stable")[: args.top_k]:
        layer, head = (int(part) for part in np.unravel_index(place, effect.attention_shifts.shape))
        if effect.attention_shifts[layer, head] > 0:
            rows.append(("", f"{layer}.{head}", "looks elsewhere", "", percent(effect.attention_shifts[layer, head])))
    record = {
        "heads": heads,
        "layers": args.layers,
        "feed_forward": args.feed_forward,
        "no_attention_to": args.tokens,
        "tokens": trace.tokens,
        "masks": masks,
        **others,
        "shifts": effect.attention_shifts,
    }
    return record, rows, "><><>"


def _other_answers(effect):
    """What an ablation does to the answers that are about no mask: dict name -> value or None."""
    found = {}
    for when in ("before", "after"):
        nsp, sop = getattr(effect, f"nsp_{when}"), getattr(effect, f"sop_{when}")
        found |= {
            f"is_next_{when}": nsp and nsp.is_next,
            f"in_order_{when}": sop and sop.in_order,
            f"classes_{when}": getattr(effect, f"classes_{when}"),
            f"replaced_{when}": getattr(effect, f"replaced_{when}"),
        }
    return found


def _sweep(bert, trace, args):
    from bert_tf import explain

    every = {
        "heads": explain.every_head,
        "layers": explain.every_layer,
        "feed-forward": explain.every_feed_forward,
    }
    ablations = explain.every_token(trace) if args.sweep == "tokens" else every[args.sweep](bert.config)
    with Progress(args) as progress:
        found = explain.sweep(bert, trace, ablations, progress)
    others = {
        "class_change": found.class_changes,
        "is_next_change": found.nsp_changes,
        "in_order_change": found.sop_changes,
        "replaced_change": None if found.replaced_changes is None else np.abs(found.replaced_changes).mean(axis=1),
    }
    ranking = []
    for place in found.ranked():
        one = ablations[place]
        part = one.heads[0] if one.heads else (one.layers or one.feed_forward or one.tokens)[0]
        ranking.append(
            {
                "off": part,
                "changes": found.changes[place],
                "divergences_bits": found.divergences[place],
                **{name: None if values is None else values[place] for name, values in others.items()},
            }
        )
    titles = {
        "class_change": "class",
        "is_next_change": "next",
        "in_order_change": "in order",
        "replaced_change": "replaced",
    }
    shown = [name for name, values in others.items() if values is not None]
    rows = [("off", "bits", *(titles[name] for name in shown))]
    for one in ranking[: args.top_k]:
        name = ".".join(map(str, one["off"])) if isinstance(one["off"], tuple) else str(one["off"])
        bits = f"{np.mean(one['divergences_bits']):.4f}" if len(one["divergences_bits"]) else "-"
        rows.append((name, bits, *(f"{one[name]:+.4f}" for name in shown)))
    followed = [bert.tokenizer.id_to_token(int(i)) for i in found.token_ids]
    return (
        {
            "sweep": args.sweep,
            "tokens": trace.tokens,
            "masks": trace.masks,
            "answers": followed,
            "ranking": ranking,
        },
        rows,
        "<>" + ">" * len(shown),
    )


def contributions(bert, trace, args):
    """What each part puts into the answer directly; the strongest heads and blocks as lines."""
    from bert_tf import explain

    found = explain.contributions(bert, trace, target_of(bert, trace, args))
    parts = {f"head {layer}.{head}": float(share) for (layer, head), share in np.ndenumerate(found.heads)}
    parts |= {f"feed-forward {layer}": float(share) for layer, share in enumerate(found.feed_forward)}
    strongest = sorted(parts.items(), key=lambda one: -abs(one[1]))[: args.top_k]
    sums = (
        ("the input", found.input),
        ("all heads", found.heads.sum()),
        ("all feed-forward blocks", found.feed_forward.sum()),
        ("biases", found.biases),
        ("together", found.total),
    )
    rows = [("part", "share"), *((name, f"{share:+.4f}") for name, share in (*strongest, *sums))]
    record = {
        "target": target_record(found.target),
        "tokens": trace.tokens,
        "score": found.score,
        "input": found.input,
        "heads": found.heads,
        "feed_forward": found.feed_forward,
        "biases": found.biases,
        "total": found.total,
    }
    return record, rows, "<>"


def patching(bert, trace, args):
    """Where the difference from another input turns into another answer."""
    from bert_tf.explain import patch_blocks, patch_heads, patch_states

    corrupted = bert.trace(args.against, args.text_b, args.mask)
    target = target_of(bert, trace, args)
    with Progress(args) as progress:
        if args.carry == "state":
            found = patch_states(bert, trace, corrupted, target, progress)
        elif args.carry == "head":
            found = patch_heads(bert, trace, corrupted, target, args.at, progress)
        else:
            found = patch_blocks(bert, trace, corrupted, target, args.carry.replace("-", "_"), progress)
    of_heads = args.carry == "head"
    names, shares = (range(len(found.scores)), found.recovered) if of_heads else (trace.tokens, found.recovered.T)
    rows = [("layer" if of_heads else "token", *map(str, range(shares.shape[1])))]
    rows += [(str(name), *map(_share, line)) for name, line in zip(names, shares)]
    record = {
        "target": target_record(target),
        "carried_over": args.carry,
        "at": args.at,
        "tokens": trace.tokens,
        "corrupted_tokens": corrupted.tokens,
        "clean": found.clean,
        "corrupted": found.corrupted,
        "scores": found.scores,
        "recovered": found.recovered,
    }
    return record, rows, "<" + ">" * shares.shape[1]


def paths(bert, trace, args):
    """What of the difference from another input goes from each part straight to one other."""
    from bert_tf.explain import patch_paths

    corrupted = bert.trace(args.against, args.text_b, args.mask)
    target, receiver = target_of(bert, trace, args), _receiver(args.to)
    with Progress(args) as progress:
        found = patch_paths(bert, trace, corrupted, target, receiver, args.at, progress)

    columns = found.scores.shape[1]
    rows = [("layer", *map(str, range(columns - 1)), "FF")]
    rows += [
        (str(layer), *(_share(share, 3) if has_path else "" for share, has_path in zip(*line)))
        for layer, line in enumerate(zip(found.recovered, found.has_path))
    ]
    ends = {"embeddings": found.embeddings, "all that enters": found.whole}
    rows += [(name, _share(found.share(score), 3), *[""] * (columns - 1)) for name, score in ends.items()]
    record = {
        "target": target_record(target),
        "to": args.to,
        "at": args.at,
        "tokens": trace.tokens,
        "corrupted_tokens": corrupted.tokens,
        "clean": found.clean,
        "corrupted": found.corrupted,
        "whole": found.whole,
        "embeddings": found.embeddings,
        "scores": found.scores,
        "recovered": found.recovered,
        "leads": found.has_path,
    }
    return record, rows, "<" + ">" * columns


def _share(share, digits=2):
    """A share of the difference; "-" where there is no difference."""
    return "-" if math.isnan(share) else f"{round(share, digits) + 0.0:.{digits}f}"


def _receiver(text):
    """The `Receiver` of "3.11.queries" or "3.feed-forward"; None of "answer"."""
    from bert_tf.explain import Receiver

    if text == "answer":
        return None
    layer, *head, part = text.split(".") if "." in text else ("", "")
    numbers = [layer, *head]
    if part in _READ and len(head) == (part != "feed-forward") and all(number.isdecimal() for number in numbers):
        return Receiver(part.replace("-", "_"), *map(int, numbers))
    raise InputError(
        "--to takes answer, LAYER.HEAD.queries (or .keys, .values) or LAYER.feed-forward, all from 0;"
        f" not {text!r:.40}."
    )


def _add_ablation(kind):
    kind.add_argument("--heads", nargs="+", action="extend", default=[], metavar="L.H", help="heads to switch off")
    kind.add_argument("--layers", nargs="+", type=int, action="extend", default=[], metavar="L", help="layers")
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
        "--tokens",
        nargs="+",
        type=int,
        action="extend",
        default=[],
        metavar="P",
        help="positions of tokens nobody may look at",
    )
    kind.add_argument(
        "--sweep",
        choices=_PARTS,
        default="heads",
        metavar="PARTS",
        help=f"with none named, each alone of: {', '.join(_PARTS)} (default heads)",
    )


def _add_patching(kind):
    add_target(kind)
    kind.add_argument("--against", metavar="TEXT", help="another first text with as many tokens")
    kind.add_argument(
        "--carry",
        choices=_CARRIED,
        default="state",
        metavar="WHAT",
        help=f"what is put over, of each layer and token: {', '.join(_CARRIED)}, heads at all (default state)",
    )
    kind.add_argument("--at", type=int, metavar="P", help="with --carry head: at this token alone")


def _add_paths(kind):
    add_target(kind)
    kind.add_argument("--against", metavar="TEXT", help="another first text with as many tokens")
    kind.add_argument(
        "--to",
        default="answer",
        metavar="PART",
        help="what the paths lead to: answer, L.H.queries, L.H.keys, L.H.values or L.feed-forward (default answer)",
    )
    kind.add_argument("--at", type=int, metavar="P", help="put a part's output over at this token alone")


def _check_both(args):
    if args.against is None:
        raise InputError("Give --against TEXT, another first text with as many tokens.")
    check_against(args)
    check_target(args)


def _check_patching(args):
    _check_both(args)
    if args.at is not None and args.carry != "head":
        raise InputError("--at goes with --carry head.")


def _check_paths(args):
    _check_both(args)
    _receiver(args.to)


KINDS = {
    "ablation": Kind(
        ablation, "what changes without some heads, layers, blocks or the attention to tokens", _add_ablation
    ),
    "contributions": Kind(
        contributions,
        "what the input, each head and feed-forward block put into the answer directly",
        add_target,
        check_target,
    ),
    "patching": Kind(
        patching, "where in the model another input turns into another answer", _add_patching, _check_patching
    ),
    "paths": Kind(paths, "what each part tells one other, or the answer, directly", _add_paths, _check_paths),
}
