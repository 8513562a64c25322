"""A file of texts on a page: a sample, an upload or typed lines, read within the deployment's limits."""

import dataclasses
import functools

import streamlit as st

from bert_tf.explain import file_kind, read_rows
from bert_tf.explain.datasets.text_rows import labelled, labels_of
from bert_tf.files import sample_file
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.widgets.formatting import count, escape_markdown

SAMPLES = {
    "sentences.txt": "Sentences",
    "pairs.jsonl": "Pairs",
    "facts.csv": "Facts to fill in",
    "reviews.csv": "Labelled reviews",
}
_TREES = {"trees.conllu": "With dependencies"}
_OWN, _TYPED = "upload", "typed"
_KEPT = "The server keeps the file only during this visit."
_TYPES = ("txt", "csv", "tsv", "jsonl", "ndjson")
#: A file of at most so many rows is run without a press on Run.
AT_ONCE = 40
HIDING_CHOICES = {"random": "A word of each row", "last": "The last word", "given": "The word that the file hides"}


@dataclasses.dataclass(frozen=True)
class ChosenFile:
    """A chosen file with the choices that decide how it is read; the key of results about the file.

    Attributes:
        name: of the file. data: its bytes, or the typed text.
        from_visitor: whether the visitor uploaded or typed it. typed: whether it was typed.
        first, second: the columns of text A and text B, or None.
        most_rows, max_characters: the largest number of rows that are read, and of characters of a text.
    """

    name: str
    data: object
    from_visitor: bool
    typed: bool
    first: object
    second: object
    most_rows: int
    max_characters: int

    @property
    def bounds(self):
        """The bounds as keyword arguments of `read_rows`."""
        return {"most_rows": self.most_rows, "max_characters": self.max_characters}


def rows(page, typed=False, trees=False, first="sentences.txt"):
    """Draw widgets that choose a file, and read the file.

    Args:
        page: name of the page; its setting "file" holds the choice. typed: whether lines may be typed.
        trees: whether the page uses dependencies, so that CoNLL-U files are offered and accepted.
        first: the sample that is read before the visitor chooses a file.

    Returns:
        (``Rows``, ``ChosenFile``), or None, with the reason on the page.
    """
    names = {**SAMPLES, **(_TREES if trees else {}), _OWN: "Your file", **({_TYPED: "Typed lines"} if typed else {})}
    chosen = st.pills(
        "File",
        list(names),
        format_func=names.get,
        label_visibility="collapsed",
        required=True,
        **state.bind_setting(f"{page}.file", f"w_{page}_file", first, names),
    )
    if chosen == _OWN:
        name, data = uploaded(page, types=(*_TYPES, "conllu") if trees else _TYPES)
    elif chosen == _TYPED:
        name, data = "lines.txt", _lines(page)
    else:
        name, data = chosen, _sample(chosen)
    if chosen == _OWN and name and not data.strip():
        st.warning(f"{escape_markdown(name)} is empty; choose a file with texts.", icon=":material/upload_file:")
        return None
    if not data.strip():
        action = "Choose a file" if chosen == _OWN else "Type texts, one on each line"
        st.info(
            f"{action}: text (one on each line, a tab before the second of a pair), JSON lines, CSV"
            f"{', TSV or CoNLL-U' if trees else ' or TSV'}.",
            icon=":material/upload_file:",
        )
        return None
    return _read(page, name, data, chosen)


@functools.cache
def _sample(name):
    return sample_file(name).read_bytes()


def uploaded(page, label="A file of texts", types=_TYPES, most=None, note=_KEPT):
    """Draw a file uploader; return (name, bytes) of the visitor's file, both empty if there is none.

    The file is kept when the visitor opens another page, where the widget is not drawn, until the visitor removes it.

    Args:
        page: name of the page. label: of the uploader. types: the allowed endings.
        most: kilobytes of the largest file; None for the deployment's limit.
        note: what the page says about the visitor's file after its name.
    """
    place, key = f"_file_{page}", f"w_{page}_upload"
    most = state.limits().max_file_kilobytes if most is None else most

    def forget():
        st.session_state.pop(place, None)

    # `on_change` follows only a visitor's change of the file, not a change of the page.
    upload = st.file_uploader(f"{label}, at most {most:,.0f} kB", type=list(types), key=key, on_change=forget)
    if upload is not None:
        if upload.size > 1000 * most:
            st.error(f"The file has {upload.size / 1000:,.0f} kB; at most {most:,.0f} kB are read. Upload a part.")
            return "", b""
        st.session_state[place] = (upload.name, upload.getvalue())
    name, data = st.session_state.get(place, ("", b""))
    if name and (note or upload is None):  # without a note the uploader says all of it
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            kept = "It comes with the explorer." if is_sample(name, data) else note
            caption = f"Read from {escape_markdown(name[:80])}. {kept}"
            st.caption(caption, width="content")
            if upload is None:  # after a change of the page the uploader is empty and has no button to remove the file
                st.button("Remove it", type="tertiary", key=f"w_{page}_forget", on_click=forget, width="content")
    return name, data


def is_refused(page):
    """Whether the uploader of `uploaded` holds a file that was too large to be read. Call it after `uploaded`."""
    return st.session_state.get(f"w_{page}_upload") is not None and f"_file_{page}" not in st.session_state


def use_sample(page, name):
    """Take a sample in place of the visitor's file of `uploaded`.

    Args:
        page: name of the page. name: of the sample's file.
    """
    st.session_state[f"_file_{page}"] = (name, _sample(name))


def is_sample(name, data):
    """Whether this is a file that comes with the explorer."""
    return name in {**SAMPLES, **_TREES} and data == _sample(name)


def _lines(page):
    return st.text_area(
        "Lines",
        height=150,
        max_chars=1000 * state.limits().max_file_kilobytes,
        placeholder="One text on each line; a tab before the second of a pair.",
        **state.bind_setting(f"{page}.lines", f"w_{page}_lines", ""),
    )


def _read(page, name, data, chosen):
    limits, kind = state.limits(), file_kind(name)
    first = second = None
    bounds = {"most_rows": limits.max_rows, "max_characters": limits.max_row_characters}
    if kind in ("jsonl", "table", "tsv"):
        first, second = _columns(
            page, cached(f"{page}_columns", (name, data), lambda: _read_all_columns(data, kind, bounds))
        )
    key = ChosenFile(name, data, chosen in (_OWN, _TYPED), chosen == _TYPED, first, second, **bounds)
    rows_read = cached(f"{page}_rows", key, lambda: read_rows(data, kind, first, second, **bounds))
    _draw_notes(rows_read, limits)
    return rows_read, key


def _read_all_columns(data, kind, bounds):
    return read_rows(data, kind, **bounds)


def _columns(page, rows_read):
    if len(rows_read.columns) < 2:
        return None, None
    left, right, _ = st.columns([1, 1, 2])
    first = left.selectbox(
        "Text A",
        rows_read.columns,
        **state.bind_setting(f"{page}.first", f"w_{page}_first", rows_read.first, rows_read.columns),
    )
    options = ["", *rows_read.columns]
    second = right.selectbox(
        "Text B",
        options,
        format_func=lambda name: name or "none",
        **state.bind_setting(f"{page}.second", f"w_{page}_second", rows_read.second or "", options),
    )
    return first, second


def _draw_notes(rows_read, limits):
    """Draw notes about the rows that were not read."""
    if rows_read.left_out:
        st.warning(
            f"The first {limits.max_rows:,} rows are read; {count(rows_read.left_out, 'row')} after them "
            f"{'are' if rows_read.left_out > 1 else 'is'} left out.",
            icon=":material/content_cut:",
        )
    if rows_read.problems:
        with st.expander(f"{count(len(rows_read.problems), rows_read.unit)} skipped", icon=":material/report:"):
            for number, why in rows_read.problems[:50]:
                st.caption(f"{rows_read.unit.title()} {number:,}: {escape_markdown(why)}")


def hide_picker(page):
    """Draw the choice of the word to mask in every row."""
    return st.segmented_control(
        "Hidden",
        list(HIDING_CHOICES),
        format_func=HIDING_CHOICES.get,
        required=True,
        help="If a row names its masked word ([MASK] in the text, or a word under “mask”), this word is hidden.",
        **state.bind_setting(f"{page}.hide", f"w_{page}_hide", "random", HIDING_CHOICES),
    )


def label_picker(page, rows_read):
    """Draw the choice of one label, if the file has labels.

    Args:
        page: name of the page; its setting "labelled" holds the choice. rows_read: ``Rows``.

    Returns:
        (``Rows`` with this label, the label), or (all ``Rows``, "").
    """
    labels = labels_of(rows_read.rows)
    if not labels:
        return rows_read, ""
    options = ["", *labels]
    label = st.selectbox(
        "Rows",
        options,
        format_func=lambda label: f"Those labelled “{label}”" if label else "All",
        width=260,
        **state.bind_setting(f"{page}.labelled", f"w_{page}_labelled", "", options),
    )
    return (dataclasses.replace(rows_read, rows=labelled(rows_read.rows, label)) if label else rows_read), label


def choose_on_page(file, page):
    """Choose a file on another page too. Call it only from a callback.

    Args:
        file: ``ChosenFile``, a sample or an upload. page: name of the other page.
    """
    if file.from_visitor:
        st.session_state[f"_file_{page}"] = (file.name, file.data)
    state.set_setting(f"{page}.file", _OWN if file.from_visitor else file.name, None)
    for name, column in (("first", file.first), ("second", file.second)):
        state.set_setting(f"{page}.{name}", column, None)


def run_requested(page, key, at_once):
    """Whether the work for ``key`` may start; draws the button Run if it must be pressed first.

    Args:
        page: name of the page and of its job. key: the inputs of the work.
        at_once: whether the work is so short that no button is needed.
    """
    place = f"_asked_{page}"
    if at_once or st.session_state.get(place) == key:
        return True
    # The job for an earlier key is not needed any more.
    jobs.drop(page)
    st.button(
        "Run",
        icon=":material/play_arrow:",
        type="primary",
        key=f"w_{page}_run",
        on_click=_request_run,
        args=(place, key),
    )
    return False


def _request_run(place, key):
    st.session_state[place] = key
