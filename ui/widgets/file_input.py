"""A file of texts on a page: a sample, uploaded or typed, and read within the deployment's limits."""

import dataclasses
import functools

import streamlit as st

from bert_tf.explain import file_kind, read_rows
from bert_tf.explain.datasets.text_rows import labelled, labels_of
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell.limits import ROOT
from ui.widgets.formatting import count, escape_markdown

_FOLDER = ROOT / "assets" / "samples"
SAMPLES = {
    "sentences.txt": "Sentences",
    "pairs.jsonl": "Pairs",
    "facts.csv": "Facts to fill in",
    "reviews.csv": "Labelled reviews",
}
_TREES = {"trees.conllu": "With dependencies"}
_OWN, _TYPED = "upload", "typed"
_TYPES = ("txt", "csv", "tsv", "jsonl", "ndjson")
#: Rows of a file that are asked about without a press on Run.
AT_ONCE = 40
HIDING_CHOICES = {"random": "A word of each row", "last": "The last word", "given": "What the file hides"}


@dataclasses.dataclass(frozen=True)
class ChosenFile:
    """What makes a file that was chosen unlike another.

    Attributes:
        name: of the file. data: its bytes, or the text that was typed. from_visitor: whether the visitor gave it.
        typed: whether it was typed. first, second: the columns of the texts, or None.
        most_rows, max_characters: how much of it is read.
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
        """What `read_rows` takes as bounds."""
        return {"most_rows": self.most_rows, "max_characters": self.max_characters}


def rows(page, typed=False, trees=False, first="sentences.txt"):
    """Widgets that choose a file, and what was read of it.

    Args:
        page: name of the page; its setting "file" holds the choice. typed: whether lines may be typed.
        trees: whether dependencies are of use, so that CoNLL-U is offered and taken.
        first: the sample that is read where nothing was chosen.

    Returns:
        (``Rows``, ``ChosenFile``), or None with the reason said.
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
    if not data or not data.strip():
        what = "Choose a file" if chosen == _OWN else "Type texts, one a line"
        st.info(
            f"{what}: text (one a line, a tab before the second of a pair), JSON lines, CSV"
            f"{', TSV or CoNLL-U' if trees else ' or TSV'}.",
            icon=":material/upload_file:",
        )
        return None
    return _read(page, name, data, chosen)


@functools.cache
def _sample(name):
    return (_FOLDER / name).read_bytes()


def uploaded(page, label="A file of texts", types=_TYPES):
    """(name, bytes) of the visitor's file, both empty while there is none.

    It outlives the widget, which is gone on another page, until the visitor takes it away.

    Args:
        page: name of the page. label: what the file is. types: the endings it may have.
    """
    place, key, most = f"_file_{page}", f"w_{page}_upload", state.limits().max_file_kilobytes

    def forget():
        st.session_state.pop(place, None)

    # Another file, or none: a change of the page is no change of the widget.
    given = st.file_uploader(f"{label}, at most {most:,} kB", type=list(types), key=key, on_change=forget)
    if given is not None:
        if given.size > 1000 * most:
            st.error(f"The file has {given.size / 1000:,.0f} kB; at most {most:,} kB are read. Upload a part.")
            return "", b""
        st.session_state[place] = (given.name, given.getvalue())
    name, data = st.session_state.get(place, ("", b""))
    if data:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            said = f"Read from {escape_markdown(name[:80])}. It stays on the server only as long as this visit."
            st.caption(said, width="content")
            if given is None:  # the widget came back empty, with nothing to press
                st.button("Take it away", type="tertiary", key=f"w_{page}_forget", on_click=forget, width="content")
    return name, data


def _lines(page):
    return st.text_area(
        "Lines",
        height=150,
        max_chars=1000 * state.limits().max_file_kilobytes,
        placeholder="One text a line; a tab before the second of a pair.",
        **state.bind_setting(f"{page}.lines", f"w_{page}_lines", ""),
    )


def _read(page, name, data, chosen):
    limits, kind = state.limits(), file_kind(name)
    first = second = None
    bounds = {"most_rows": limits.max_rows, "max_characters": limits.max_row_characters}
    if kind in ("jsonl", "table"):
        first, second = _columns(
            page, cached(f"{page}_columns", (name, data), lambda: _read_all_columns(data, kind, bounds))
        )
    key = ChosenFile(name, data, chosen in (_OWN, _TYPED), chosen == _TYPED, first, second, **bounds)
    found = cached(f"{page}_rows", key, lambda: read_rows(data, kind, first, second, **bounds))
    _say(found, limits)
    return found, key


def _read_all_columns(data, kind, bounds):
    return read_rows(data, kind, **bounds)


def _columns(page, found):
    if len(found.columns) < 2:
        return None, None
    left, right, _ = st.columns([1, 1, 2])
    first = left.selectbox(
        "Text A",
        found.columns,
        **state.bind_setting(f"{page}.first", f"w_{page}_first", found.first, found.columns),
    )
    options = ["", *found.columns]
    second = right.selectbox(
        "Text B",
        options,
        format_func=lambda name: name or "none",
        **state.bind_setting(f"{page}.second", f"w_{page}_second", found.second or "", options),
    )
    return first, second


def _say(found, limits):
    if found.left_out:
        st.warning(
            f"The first {limits.max_rows:,} rows are read; {count(found.left_out, 'row')} after them "
            f"{'are' if found.left_out > 1 else 'is'} left out.",
            icon=":material/content_cut:",
        )
    if found.problems:
        with st.expander(f"{count(len(found.problems), found.unit)} passed over", icon=":material/report:"):
            for number, why in found.problems[:50]:
                st.caption(f"{found.unit.title()} {number:,}: {escape_markdown(why)}")


def hide_picker(page):
    """The choice of what to hide in every row."""
    return st.segmented_control(
        "Hidden",
        list(HIDING_CHOICES),
        format_func=HIDING_CHOICES.get,
        required=True,
        help="Where a row hides something itself ([MASK] in it, or a word under “mask”), that is hidden.",
        **state.bind_setting(f"{page}.hide", f"w_{page}_hide", "random", HIDING_CHOICES),
    )


def label_picker(page, found):
    """The choice of one label, where a file has some: only the rows that have it are asked about.

    Args:
        page: name of the page; its setting "labelled" holds the choice. found: ``Rows``.
    Returns:
        (``Rows`` of that label alone, or all, the label or "").
    """
    labels = labels_of(found.rows)
    if not labels:
        return found, ""
    options = ["", *labels]
    label = st.selectbox(
        "Rows",
        options,
        format_func=lambda one: f"Those labelled “{one}”" if one else "All",
        width=260,
        **state.bind_setting(f"{page}.labelled", f"w_{page}_labelled", "", options),
    )
    return (dataclasses.replace(found, rows=labelled(found.rows, label)) if label else found), label


def choose_on_page(file, page):
    """Choose a file on another page too. Only from a callback.

    Args: file: ``ChosenFile``, a sample or an upload. page: name of the other page.
    """
    if file.from_visitor:
        st.session_state[f"_file_{page}"] = (file.name, file.data)
    state.set_setting(f"{page}.file", _OWN if file.from_visitor else file.name, None)
    for name, column in (("first", file.first), ("second", file.second)):
        state.set_setting(f"{page}.{name}", column, None)


def run_requested(page, key, at_once):
    """Whether the work for ``key`` may begin: a button asks for it, unless it is short.

    Args:
        page: name of the page, of its job too. key: of the work. at_once: whether no button is needed.
    """
    place = f"_asked_{page}"
    if at_once or st.session_state.get(place) == key:
        return True
    # What was asked for before is wanted no more.
    jobs.drop(page)
    st.button(
        "Run",
        icon=":material/play_arrow:",
        type="primary",
        key=f"w_{page}_run",
        on_click=_ask,
        args=(place, key),
    )
    return False


def _ask(place, key):
    st.session_state[place] = key
