"""The Python code for what the page time lapse shows."""

from pages.training.snippets.reading import reading_run
from ui.widgets.snippet_parts import asked, script

_SERIES = """\
series = SnapshotSeries({snapshots})
moments = series.snapshot_traces({asked})
trace = next(one.trace for one in moments if one.step == {step})"""
_TRAJECTORIES = """\
for mask in fill_mask(trace, series.tokenizer, top_k={top_k}):
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions])
    followed = token_trajectory(moments, series.tokenizer, mask.position)
    print(followed.token, followed.ranks, followed.probabilities.round(3), followed.first_step_within_rank)"""
_PAIR = "print([(one.step, one.trace.{verdict}) for one in moments])"
_MAP = "print(trace.attentions[{layer}, {head}].round(3))  # row a token that looks, column one looked at"


def snippet(view, folder, trace, step, layer, head, some=None):
    """One text through the snapshots of a run.

    Args:
        folder: of the run. trace: of the snapshot that is shown. step: its step. layer, head: of the map, from 0.
        some: the steps that are looked at; None for all.
    """
    imports, read = reading_run(folder)
    masks = bool(trace.masks) and trace.logits is not None
    imports = [*imports, "from bert_tf.explain.models.snapshot_series import SnapshotSeries"]
    imports += ["from bert_tf.explain.models.time_lapse import token_trajectory"] if masks else []
    imports += ["from bert_tf.inference.predictions import fill_mask"] if masks else []
    chosen = f"[one for one in run.snapshots if one.step in {some}]" if some else "run.snapshots"
    parts = [
        _SERIES.format(asked=asked(trace), step=step, snapshots=chosen),
        _TRAJECTORIES.format(top_k=view.top_k) if masks else "",
        *(_PAIR.format(verdict=name) for name in ("nsp.is_next", "sop.in_order") if _has(trace, name)),
        "print(trace.replaced.round(3))" if trace.replaced is not None else "",
        _MAP.format(layer=layer, head=head),
    ]
    return script(imports, read, *parts)


def _has(trace, verdict):
    return getattr(trace, verdict.partition(".")[0]) is not None
