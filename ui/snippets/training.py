"""The lines of the pages about trainings."""

from bert_tf.plots.training.curves import PANELS
from ui.shell.limits import ROOT
from ui.snippets.parts import asked, script

_IMPORT = "from bert_tf.training.run_folder import read_run"


def _reading(folder):
    """(imports, the line that reads a run): a shipped one by its path in the project, a visitor's own by its name."""
    if folder.is_relative_to(ROOT):
        return (_IMPORT,), f'run = read_run("{folder.relative_to(ROOT).as_posix()}")  # in the project\'s folder'
    from bert_tf.checkpoints import models_dir

    if folder.parent == models_dir() / "runs":
        # Where that lies on this server is nothing for a visitor.
        line = f'run = read_run(models_dir() / "runs" / {folder.name!r})'
        return ("from bert_tf.checkpoints import models_dir", _IMPORT), line
    return (_IMPORT,), f"run = read_run({folder.name!r})  # the folder of the training"


_CURVES = """\
print(run.step, run.total)
for name in {names}:
    steps, values = run.curve(name)
    print(name, list(zip(steps, values))[-5:])  # the last five"""


def training(view, run):
    """The curves of a ``Run``."""
    imports, read = _reading(run.folder)
    names = [name for panel, _ in PANELS.values() for name, _ in panel if run.curve(name)[0]]
    return script(imports, read, _CURVES.format(names=tuple(names)))


_SERIES = """\
series = Series({snapshots})
moments = series.snapshot_traces({asked})
trace = next(one.trace for one in moments if one.step == {step})"""
_COURSES = """\
for mask in fill_mask(trace, series.tokenizer, top_k={top_k}):
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions])
    followed = course(moments, series.tokenizer, mask.position)
    print(followed.token, followed.ranks, followed.probabilities.round(3), followed.first_step_within_rank)"""
_PAIR = "print([(one.step, one.trace.{verdict}) for one in moments])"
_MAP = "print(trace.attentions[{layer}, {head}].round(3))  # row a token that looks, column one looked at"


def timelapse(view, folder, trace, step, layer, head, some=None):
    """One text through the snapshots of a run.

    Args:
        folder: of the run. trace: of the snapshot that is shown. step: its step. layer, head: of the map, from 0.
        some: the steps that are looked at; None for all.
    """
    imports, read = _reading(folder)
    masks = bool(trace.masks) and trace.logits is not None
    names = "Series, course" if masks else "Series"
    imports = [*imports, f"from bert_tf.explain.models.snapshot_series import {names}"]
    imports += ["from bert_tf.explain import fill_mask"] if masks else []
    chosen = f"[one for one in run.snapshots if one.step in {some}]" if some else "run.snapshots"
    said = [
        _SERIES.format(asked=asked(trace), step=step, snapshots=chosen),
        _COURSES.format(top_k=view.top_k) if masks else "",
        *(_PAIR.format(verdict=name) for name in ("nsp.is_next", "sop.in_order") if _has(trace, name)),
        "print(trace.replaced.round(3))" if trace.replaced is not None else "",
        _MAP.format(layer=layer, head=head),
    ]
    return script(imports, read, *said)


def _has(trace, verdict):
    return getattr(trace, verdict.partition(".")[0]) is not None
