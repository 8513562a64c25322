"""The runs of trainings that the pages show: the shipped ones, and those in the folder that explorer.toml names.

A visitor chooses a name from a listing; no text from a browser reaches the file system.
"""

import os
import pathlib

import streamlit as st

from bert_tf.training.run_folder import find_runs, find_snapshots, read_run
from ui.session import state
from ui.shell.limits import ROOT
from ui.widgets.formatting import count, escape_markdown, replaced

SHIPPED = ROOT / "assets" / "training"
#: Pages about one training; a training that is chosen on one of them is chosen on the other too.
_PAGES = ("training_curves", "time_lapse")
_SHOWN = "_shown_run"  # in the session: the run that the visitor chose or saw last


def folder():
    """The folder of the runs that are not shipped; runs that are started from the page are written into it."""
    from bert_tf.checkpoints import models_dir

    path = os.path.expanduser(state.limits().runs)  # "~" with an unknown user stays as it is
    return pathlib.Path(path).absolute() if path else models_dir() / "runs"


def runs():
    """The folders of all runs: dict from a run's name to its folder, the shipped ones first."""
    not_shipped = {path.name: path for path in find_runs(folder())}
    return {path.name: path for path in find_runs(SHIPPED)} | not_shipped


def snapshots():
    """All snapshots of all runs: dict from the name as a model, like "plain-english/step-1000", to `Snapshot`."""
    return {
        f"{name}/{snapshot.folder.name}": snapshot for name, path in runs().items() for snapshot in find_snapshots(path)
    }


def chosen_run(known):
    """The name of the run in the page's setting "run"; if it is not among ``known``, the first of them."""
    name = state.setting(f"{state.view().page}.run", "")
    return name if name in known else next(iter(known))


def choose_run(name):
    """Choose a run on both pages about a training. Call it only from a callback."""
    st.session_state[_SHOWN] = name
    for page in _PAGES:
        state.set_setting(f"{page}.run", name, "")


def run_picker(known):
    """Draw a box to choose a run of ``known``, a dict from names to folders; return the folder of the chosen run."""
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
    note_replaced(name)
    return known[name]


def note_replaced(name, shown_key=_SHOWN):
    """Warn that a training is shown in the place of the link's; not of one that was deleted meanwhile.

    Args:
        name: of the training that the page shows. shown_key: where the session keeps the name that was shown last.
    """
    asked = state.setting(f"{state.view().page}.run", "")
    if asked == name:
        st.session_state[shown_key] = name
    elif asked and asked != st.session_state.get(shown_key):
        st.warning(replaced("training", asked, name))


def _label(name):
    return f"{name}, shipped" if (SHIPPED / name).is_dir() else name


def describe_run(run):
    """The start, the batches, the text and the snapshots of a run, in one line of Markdown."""
    settings, facts = run.settings, []
    if settings.get("size"):
        facts.append(f"from random weights ({_size_in_words(settings['size'])})")
    elif settings.get("init"):
        facts.append(f"from {settings['init']}")
    if settings.get("batch_size"):
        facts.append(
            f"{settings['batch_size']} sequences of {settings.get('phases') or settings.get('length')} tokens a step"
        )
    if run.text.get("tokens"):
        facts.append(f"{run.text['tokens']:,} tokens of text")
    facts.append(count(len(run.snapshots), "snapshot"))
    return " · ".join(escape_markdown(str(fact)) for fact in facts)


def _size_in_words(size):
    """ "3x128x4" as "3 layers of 128, 4 heads"; the name of a size as it is."""
    numbers = size.split("x")
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        return size
    layers, width, heads = map(int, numbers)
    return f"{count(layers, 'layer')} of {width}, {count(heads, 'head')}"


def read(path):
    """The ``Run`` in the folder ``path``, read from disk."""
    return read_run(path)
