"""Subsets of a file's rows that a visitor has named. They are a setting of the view, so the link holds them too.

The setting holds the subsets of all files, joined by ";". Each is the file, the name and the row numbers, joined by
"/", such as "reviews.csv/long ones/1-4.7". A link cannot hold an uploaded file: its name here is a part of its hash.
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
_MOST, _LONGEST = 8, 40  # subsets of a file; characters of a name
_NAME = "w_dataset_subset_name"
WHOLE = "All rows"  # the name of the whole file beside the subsets


def read(file, results):
    """The subsets of a file; those of the link that cannot be read are left out.

    Args:
        file: ``ui.widgets.file_input.Chosen``. results: ``RowResult``s of all its rows.

    Returns:
        dict name -> tuple of row numbers.
    """
    numbers, named = [result.row.number for result in results], {}
    for name, rows in _entries(file):
        try:
            named[name] = parse_row_numbers(rows, numbers)
        except InputError:
            continue
    return {name: rows for name, rows in list(named.items())[:_MOST] if rows}


def rows_of(results, numbers):
    """The ``RowResult``s whose rows have these numbers."""
    wanted = set(numbers)
    return [result for result in results if result.row.number in wanted]


def controls(file, results, named, ticked, filtered):
    """Draw the widgets that make a subset, rename one and delete one.

    Args:
        file, results: as in ``read``. named: dict, as ``read`` returns it.
        ticked, filtered: ``RowResult``s that are ticked in the table, and those that the filter leaves.
    """
    rows = ticked or (filtered if 0 < len(filtered) < len(results) else ())
    with st.expander(f"Subsets ({len(named)})" if named else "Name a subset", icon=":material/bookmark:"):
        if not rows:
            st.caption("Tick rows in the table, or set a filter above. Then name these rows here as a subset.")
        elif len(named) == _MOST:
            st.caption(f"There are {_MOST} subsets: delete one to name another.")
        else:
            _new(file, results, named, rows, "ticked" if ticked else "under this filter")
        for index, (name, numbers) in enumerate(named.items()):
            _old(file, results, named, index, name, numbers)


def _new(file, results, named, rows, which):
    chosen = [result.row.number for result in rows]

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


def _old(file, results, named, index, name, numbers):
    key = f"w_dataset_subset_{index}"
    state.set_widget(key, name)

    def rename():
        new = _clean(st.session_state[key])
        if new and not _taken(new, named):
            _write(file, {new if old == name else old: rows for old, rows in named.items()})
            _follow(name, new)

    def delete():
        _write(file, {old: rows for old, rows in named.items() if old != name})
        _follow(name, "")

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(f"Name ({count(len(numbers), 'row')})", max_chars=_LONGEST, width=320, key=key, on_change=rename)
        _concept_button(f"{key}_concept", file, results, numbers)
        st.button(f"Delete {escape_markdown(name)}", icon=":material/delete:", key=f"{key}_delete", on_click=delete)


def _concept_button(key, file, results, numbers):
    """A button that opens the page Concepts, with these rows as the concept and the other rows as the comparison."""
    concept_texts, wanted = [result.row.text_a for result in rows_of(results, numbers)], set(numbers)
    other_texts = [result.row.text_a for result in results if result.row.number not in wanted]
    few = len(concept_texts) < MIN_SENTENCES or len(other_texts) < 2 * MIN_SENTENCES

    def test():
        limits = state.limits()
        texts = {"own": concept_texts, "others": other_texts}
        state.set_setting("tcav.concept", concepts.OWN, None)
        for name, sentences in texts.items():
            lines = concepts.lines(sentences, limits.max_sentences, limits.max_characters)
            state.set_setting(f"tcav.{name}", lines, "")
        file_input.choose_on_page(file, "tcav")
        state.change_view(page="tcav")

    st.button(
        "Test as a concept",
        icon=":material/experiment:",
        key=key,
        on_click=test,
        disabled=few,
        help=f"A concept takes at least {MIN_SENTENCES} rows, and {2 * MIN_SENTENCES} other rows to compare them with."
        if few
        else "Opens Concepts with text A of these rows, and text A of the other rows to compare them with.",
    )


def _follow(name, new):
    """Set the filter to the new name of its subset, or to "" if the subset was deleted."""
    if state.setting(_CHOSEN, "") == name:
        state.set_setting(_CHOSEN, new, "")


def _clean(name):
    """A name without control characters and without the separators of the setting and of a saved table's cell."""
    cleaned = "".join(letter if letter.isprintable() and letter not in "/;|" else " " for letter in name or "")
    return " ".join(cleaned.split())[:_LONGEST].strip()


def _taken(name, named):
    return name in named or name == WHOLE


def _say_taken(name, named):
    if _taken(name, named):
        st.caption(f"“{escape_markdown(name)}” is taken: choose another name.")


def _named(file):
    """The name of a file in the setting."""
    if not file.from_visitor:
        return file.name
    data = file.data.encode() if isinstance(file.data, str) else file.data
    return f"own-{hashlib.sha256(data).hexdigest()[:8]}"


def _entries(file=None):
    """The subsets in the setting: pairs (name, rows as text) of a file; of all files triples (file, name, rows)."""
    parts = [entry.split("/") for entry in state.setting(_SETTING, "").split(";")]
    entries = [(where, _clean(name), rows) for where, name, rows in (entry for entry in parts if len(entry) == 3)]
    entries = [(where, name, rows) for where, name, rows in entries if name and name != WHOLE]
    return entries if file is None else [(name, rows) for where, name, rows in entries if where == _named(file)]


def _write(file, named):
    entries = [(_named(file), name, format_row_numbers(rows)) for name, rows in named.items()]
    other_files = [entry for entry in _entries() if entry[0] != _named(file)]
    state.set_setting(_SETTING, ";".join("/".join(entry) for entry in [*other_files, *entries]), "")
