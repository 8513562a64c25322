"""The trainings that can be looked at: the shipped ones, and those in the folder that explorer.toml names.

A visitor chooses among names that were looked up; no text from a browser reaches the file system.
"""

import pathlib

import streamlit as st

from bert_tf.training.run_folder import find_runs, find_snapshots, read_run
from ui.session import state
from ui.shell.limits import ROOT
from ui.widgets.formatting import count, escape_markdown

SHIPPED = ROOT / "assets" / "training"
#: Pages about one training; the one that is open on one of them is open on the other.
_PAGES = ("training_curves", "time_lapse")


def folder():
    """Where runs are looked for, and where those started here are written."""
    from bert_tf.checkpoints import models_dir

    named = state.limits().runs
    return pathlib.Path(named).expanduser() if named else models_dir() / "runs"


def runs():
    """Name -> folder of every run, the shipped ones first."""
    own = {path.name: path for path in find_runs(folder())}
    return {path.name: path for path in find_runs(SHIPPED)} | own


def snapshots():
    """Name -> `Snapshot` of every snapshot of every run, as models that can be chosen: "plain-english/step-1000"."""
    return {f"{name}/{one.folder.name}": one for name, path in runs().items() for one in find_snapshots(path)}


def chosen_run(known):
    """The run that the link names, or the first; settled for both pages of runs."""
    name = state.setting(f"{state.view().page}.run", "")
    return name if name in known else next(iter(known))


def choose_run(name):
    """Open a run on both pages. Only from a callback."""
    for page in _PAGES:
        state.set_setting(f"{page}.run", name, "")


def run_picker(known):
    """A box to choose a run with. Returns: its folder."""
    name, key = chosen_run(known), "w_run"
    state.set_widget(key, name)
    st.selectbox(
        "Training",
        list(known),
        key=key,
        on_change=lambda: choose_run(st.session_state[key]),
        format_func=_label,
        width=420,
    )
    return known[name]


def _label(name):
    return f"{name}, shipped" if (SHIPPED / name).is_dir() else name


def describe_run(run):
    """A line of what a run is."""
    settings, said = run.settings, []
    if settings.get("size") or settings.get("init"):
        said.append(f"from random weights ({settings['size']})" if settings.get("size") else f"from {settings['init']}")
    if settings.get("batch_size"):
        said.append(
            f"{settings['batch_size']} sequences of {settings.get('phases') or settings.get('length')} tokens a step"
        )
    if run.text.get("tokens"):
        said.append(f"{run.text['tokens']:,} tokens of text")
    said.append(count(len(run.snapshots), "snapshot"))
    return " · ".join(escape_markdown(str(fact)) for fact in said)


def read(path):
    """The run in ``path`` as it is now."""
    return read_run(path)
