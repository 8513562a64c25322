"""Subsets of a file's rows that a visitor has named: kept in the view's settings, so also in the link.

The setting holds all of them, ";" between two: the file, the name and the rows, "/" between, as in
"reviews.csv/long ones/1-4.7". A visitor's own file, which no link holds, is named by a part of its content's hash.
"""

import hashlib

import streamlit as st

from bert_tf.errors import InputError
from bert_tf.explain.datasets.text_rows import format_row_numbers, parse_row_numbers
from bert_tf.explain.representations.tcav import MIN_SENTENCES
from ui.samples import concepts
from ui.session import state
from ui.widgets import file_input
from ui.widgets.formatting import count, escape_markdown

_SETTING, _CHOSEN = "dataset.subsets", "dataset.subset"
_MOST, _LONGEST = 8, 40  # of a file; characters of a name
_NAME = "w_dataset_subset_name"
WHOLE = "All rows"  # what the whole file is called beside them


def read(file, results):
    """The subsets of a file, dict from name to a tuple of row numbers; what a link says and is none is left out.

    Args: file: ``ui.widgets.file_input.Chosen``. results: ``RowResult``s of all its rows.
    """
    numbers, found = [one.row.number for one in results], {}
    for name, rows in _entries(file):
        try:
            found[name] = parse_row_numbers(rows, numbers)
        except InputError:
            continue
    return {name: rows for name, rows in list(found.items())[:_MOST] if rows}


def rows_of(results, numbers):
    """Those of the ``RowResult``s whose rows have these numbers."""
    wanted = set(numbers)
    return [one for one in results if one.row.number in wanted]


def controls(file, results, named, ticked, shown):
    """Widgets that name rows as a subset, rename one and delete one.

    Args:
        file, results: as ``read`` takes them. named: what it gave. ticked: rows that are ticked. shown: those that
            the filter leaves.
    """
    rows = ticked or (shown if 0 < len(shown) < len(results) else ())
    with st.expander(f"Subsets ({len(named)})" if named else "Name a subset", icon=":material/bookmark:"):
        if not rows:
            st.caption("Tick rows in the table, or set a filter above: what is left can be named here as a subset.")
        elif len(named) == _MOST:
            st.caption(f"There are {_MOST} subsets: delete one to name another.")
        else:
            _new(file, results, named, rows, "ticked" if ticked else "under this filter")
        for place, (name, own) in enumerate(named.items()):
            _old(file, results, named, place, name, own)


def _new(file, results, named, rows, which):
    chosen = [one.row.number for one in rows]

    def keep():
        name = _clean(st.session_state.get(_NAME))
        if name and not _taken(name, named):
            _write(file, {**named, name: chosen})
            st.session_state[_NAME] = ""

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(f"Name of the {count(len(rows), 'row')} {which}", max_chars=_LONGEST, width=320, key=_NAME)
        st.button("Keep as a subset", icon=":material/bookmark_add:", key="w_dataset_subset_keep", on_click=keep)
        _concept_button("w_dataset_subset_concept", file, results, chosen)
    _say_taken(_clean(st.session_state.get(_NAME)), named)


def _old(file, results, named, place, name, own):
    key = f"w_dataset_subset_{place}"
    state.set_widget(key, name)

    def rename():
        new = _clean(st.session_state[key])
        if new and not _taken(new, named):
            _write(file, {new if one == name else one: rows for one, rows in named.items()})
            _follow(name, new)

    def delete():
        _write(file, {one: rows for one, rows in named.items() if one != name})
        _follow(name, "")

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(f"Name ({count(len(own), 'row')})", max_chars=_LONGEST, width=320, key=key, on_change=rename)
        _concept_button(f"{key}_concept", file, results, own)
        st.button(f"Delete {escape_markdown(name)}", icon=":material/delete:", key=f"{key}_delete", on_click=delete)


def _concept_button(key, file, results, numbers):
    """A button that opens Concepts with these rows as a concept and the others of the file to compare them with."""
    own, wanted = [one.row.text_a for one in rows_of(results, numbers)], set(numbers)
    rest = [one.row.text_a for one in results if one.row.number not in wanted]
    few = len(own) < MIN_SENTENCES or len(rest) < 2 * MIN_SENTENCES

    def test():
        limits = state.limits()
        texts = {"own": own, "others": rest}
        state.set_setting("tcav.concept", concepts.OWN, None)
        for name, one in texts.items():
            lines = concepts.lines(one, limits.max_sentences, limits.max_characters)
            state.set_setting(f"tcav.{name}", lines, "")
        file_input.choose_on_page(file, "tcav")
        state.change_view(page="tcav")

    st.button(
        "Test as a concept",
        icon=":material/experiment:",
        key=key,
        on_click=test,
        disabled=few,
        help=f"A concept takes at least {MIN_SENTENCES} rows, and {2 * MIN_SENTENCES} others to compare them with."
        if few
        else "Opens Concepts with text A of these rows, and of the others to compare them with.",
    )


def _follow(name, new):
    """The filter, where it was on a subset that has another name now or is gone."""
    if state.setting(_CHOSEN, "") == name:
        state.set_setting(_CHOSEN, new, "")


def _clean(name):
    """A name without the letters that part the setting or the cell of a saved table, and without control characters."""
    cleaned = "".join(letter if letter.isprintable() and letter not in "/;|" else " " for letter in name or "")
    return " ".join(cleaned.split())[:_LONGEST].strip()


def _taken(name, named):
    return name in named or name == WHOLE


def _say_taken(name, named):
    if _taken(name, named):
        st.caption(f"“{escape_markdown(name)}” is a name already: choose another.")


def _named(file):
    """What a file is called in the setting."""
    if not file.from_visitor:
        return file.name
    data = file.data.encode() if isinstance(file.data, str) else file.data
    return f"own-{hashlib.sha256(data).hexdigest()[:8]}"


def _entries(file=None):
    """Pairs (name, rows as text) of a file; of all files triples with the file's name first."""
    parts = [one.split("/") for one in state.setting(_SETTING, "").split(";")]
    parts = [(where, _clean(name), rows) for where, name, rows in (one for one in parts if len(one) == 3)]
    every = [one for one in parts if one[1] and one[1] != WHOLE]
    return every if file is None else [(name, rows) for where, name, rows in every if where == _named(file)]


def _write(file, named):
    own = [(_named(file), name, format_row_numbers(rows)) for name, rows in named.items()]
    rest = [one for one in _entries() if one[0] != _named(file)]
    state.set_setting(_SETTING, ";".join("/".join(one) for one in [*rest, *own]), "")
