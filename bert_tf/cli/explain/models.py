"""The kinds of `explain` about models themselves: their parts, their training."""

from bert_tf.analysis import parse_head
from bert_tf.cli.explain.shared import Kind, Progress, predictions_record
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError, checked_text
from bert_tf.quiet_import import import_tensorflow

_PASSING = (
    "queries",
    "keys",
    "values",
    "attentions",
    "attention",
    "attention_norm",
    "feed_forward_wide",
    "feed_forward",
    "feed_forward_norm",
)


def architecture(bert, trace, args):
    """The parts of the model with shapes, parameters and work, its other sizes, the values that pass a layer."""
    from bert_tf.explain.models.architecture import (
        all_sizes,
        layer_activations,
        parts,
        task_head_activations,
    )

    masks = max(len(trace.masks), 1)
    found = parts(bert.model, trace.length, masks, bert.task)
    work = sum(part.flops for part in found)
    record = {
        "tokens": trace.tokens,
        "show": args.show,
        "parts": [
            {
                "name": part.name,
                "title": part.title,
                "shape": {letter: number for letter, number in part.shape},
                "parameters": part.parameters,
                "flops": part.flops,
                "share_of_work": part.flops / work,
                "repeats": part.repeats,
                "sets": part.sets,
            }
            for part in found
        ],
        "sizes": [
            {"name": size.name, "parameters": size.parameters, "flops": size.flops}
            for size in all_sizes(bert.config, trace.length, masks)
        ],
        "task": None if bert.task is None else task_head_activations(bert, trace),
    }
    if args.show in _PASSING:
        record |= {"layer": args.layer, "values": layer_activations(bert, trace, args.layer)[args.show]}
    rows = [("part", "times", "gives", "parameters", "work")]
    rows += [
        (
            part.title,
            str(part.repeats),
            " x ".join(f"{letter} {number:,}" for letter, number in part.shape),
            f"{part.parameters:,}",
            percent(part.flops / work) if part.flops else "-",
        )
        for part in found
    ]
    return record, rows, "<><>>"


def family(bert, trace, args):
    """Every size of every member of the family: parameters, objectives, work and, where it is asked for, speed."""
    from bert_tf.explain.models.architecture_table import (
        architecture_rows,
        changed,
        measure_speed,
        objectives,
    )

    if args.length < 1:
        raise InputError(f"--length must be at least 1, not {args.length}.")
    found = [
        row
        for row in architecture_rows(args.length)
        if args.largest is None or row.parameters["total"] <= args.largest * 1e6
    ]
    if not found:
        raise InputError(f"No size has at most {args.largest:g} million parameters.")
    times = [None] * len(found)
    if args.speed:
        import_tensorflow()
        with Progress(args) as progress:
            times = measure_speed(found, progress=progress)
    rows = [("member", "size", "parameters", "work", *(["time"] if args.speed else []))]
    for row, seconds in zip(found, times):
        sizes = f"{row.parameters['total']:,}", f"{row.flops / 1e9:,.2f} GFLOP"
        took = [] if not args.speed else ["-" if seconds is None else f"{1000 * seconds:.1f} ms"]
        rows.append((row.architecture.title, row.size, *sizes, *took))
    record = {
        "model": "family",
        "show": args.show,
        "length": args.length,
        "sizes": [
            {
                "member": row.architecture.title,
                "size": row.size,
                "learns_from": objectives(row),
                "changed": changed(row),
                "parameters": row.parameters,
                "parts": row.parts,
                "flops": row.flops,
                "seconds": seconds,
                "timed_whole": row.timed_whole,
            }
            for row, seconds in zip(found, times)
        ],
    }
    return record, rows, "<<>>" + ">" * args.speed


def timelapse(bert, trace, args):
    """One text through the snapshots of a training: what each said, and how one token of each mask fared."""
    import_tensorflow()
    from bert_tf.explain import fill_mask
    from bert_tf.explain.models.snapshot_series import SnapshotSeries, token_trajectory

    series = SnapshotSeries(args.snapshots)
    snapshot_traces = series.snapshot_traces(args.text_a, args.text_b, args.mask)
    last = snapshot_traces[-1].trace
    masks = last.masks if last.logits is not None else ()
    token_trajectories = [
        token_trajectory(snapshot_traces, series.tokenizer, position, args.target) for position in masks
    ]
    snapshots = []
    for moment in snapshot_traces:
        one = moment.trace
        answers = fill_mask(one, series.tokenizer, args.top_k) if masks else ()
        snapshots.append(
            {
                "step": moment.step,
                "masks": [{"position": mask.position, "predictions": predictions_record(mask)} for mask in answers],
                "is_next": one.nsp and one.nsp.is_next,
                "in_order": one.sop and one.sop.in_order,
                "replaced": one.replaced,
            }
        )
    record = {
        "model": args.about.name,
        "tokens": last.tokens,
        "steps": series.steps,
        "courses": [
            {
                "position": one.position,
                "token": one.token,
                "ranks": one.ranks,
                "probabilities": one.probabilities,
                "entered": {str(place): step for place, step in one.first_step_within_rank.items()},
            }
            for one in token_trajectories
        ],
        "snapshots": snapshots,
    }
    if args.head is not None:
        record |= {"head": args.head, "attention": _one_head(snapshot_traces, *parse_head(args.head))}
    return record, *_lapse_rows(record)


def _one_head(snapshot_traces, layer, head):
    layers, heads = snapshot_traces[0].trace.attentions.shape[:2]
    if layer >= layers or head >= heads:
        raise InputError(f"There is no head {layer}.{head}: this model has {layers} layers of {heads}, from 0.")
    return [moment.trace.attentions[layer, head] for moment in snapshot_traces]


def _lapse_rows(record):
    ways = {
        name: what
        for name, what in (("is_next", "follows"), ("in_order", "in order"))
        if record["snapshots"][-1][name] is not None
    }
    names = [f"{one['position']}: {one['token']}" for one in record["courses"]]
    rows = [("step", *(cell for name in names for cell in ("first guess", f"rank of {name}")), *ways.values())]
    for number, one in enumerate(record["snapshots"]):
        cells = []
        for mask, token_trajectory in zip(one["masks"], record["courses"]):
            cells += [mask["predictions"][0]["token"], f"{token_trajectory['ranks'][number]:,}"]
        rows.append((f"{one['step']:,}", *cells, *(percent(one[name]) for name in ways)))
    return rows, ">" + "<>" * len(names) + ">" * len(ways)


def _check_run(args):
    from bert_tf.training.run_folder import read_run

    args.about = read_run(args.folder)
    args.snapshots = args.about.snapshots
    if not args.snapshots:
        raise InputError(f"{args.folder} has kept no snapshots; start a training with --snapshots.")
    if args.head is not None:
        parse_head(args.head)


def _check_text(args):
    checked_text(args.text_a, "TEXT")


def _add_architecture(kind):
    choices = ("parts", "sizes", *_PASSING)
    kind.add_argument(
        "--show", choices=choices, default="parts", metavar="F", help=f"figure: {', '.join(choices)} (default parts)"
    )
    kind.add_argument("--layer", type=int, default=0, metavar="L", help="whose values those are, from 0 (default 0)")


def _add_family(kind):
    kind.add_argument("--length", type=int, default=128, metavar="T", help="tokens of the text (default 128)")
    kind.add_argument("--largest", type=float, metavar="P", help="only sizes of at most so many million parameters")
    kind.add_argument("--speed", action="store_true", help="also time a pass of each on this machine")
    kind.add_argument(
        "--show",
        choices=("parts", "work"),
        default="parts",
        metavar="F",
        help="figure: parts (default) or work; with --speed it is the time",
    )


def _add_timelapse(kind):
    kind.add_argument("folder", metavar="RUN", help="the --output of a pre-training with snapshots")
    kind.add_argument(
        "--target", metavar="TOKEN", help="the token to follow (default: the hidden one, or the last guess)"
    )
    kind.add_argument("--head", metavar="L.H", help="also the attention of this head at every step, from 0")


KINDS = {
    "architecture": Kind(
        architecture, "the model's parts, their sizes and work, and the values that pass them", _add_architecture
    ),
    "family": Kind(
        family,
        "every size of every member of the family: parameters, work, speed",
        _add_family,
        texts="",
        masks=False,
        traced=False,
        model=False,
    ),
    "timelapse": Kind(
        timelapse, "one text through the snapshots of a training", _add_timelapse, _check_run, traced=False, model=False
    ),
}
