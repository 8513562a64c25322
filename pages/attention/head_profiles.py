"""Head profiles: measures of every head over the text or a file, which heads do alike, and syntax."""

import hashlib

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain import head_profiles, profile_trace
from bert_tf.explain.datasets.text_rows import file_kind, read_rows
from bert_tf.plots.attention.head_profile import cluster_names, head_plane
from pages.attention.snippets.head_profiles import snippet
from ui.elements import components
from ui.session import jobs, state
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown

PAGE = Page(
    name="head_profiles",
    group="Attention",
    order=5,
    title="Head profiles",
    question="What heads do",
    summary=(
        "entropy, distance, shares on [CLS], [SEP], the token before, after and itself, of every head over "
        "the text or a file; heads that do alike on a plane; with a CoNLL-U file, which heads follow its "
        "syntax"
    ),
    presses={"": Press("head")},
    analyses=("head-profiles",),
    settings=("measure", "of"),
    settings_help="`entropy`, `distance`, `cls_share`, …; `file` for a file, which a link cannot hold",
    opens_rows=True,
    snippet=snippet,
)


#: Measure -> (title, what it means). "syntax" is there only with a parsed file.
MEASURES = {
    "entropy": ("Entropy", "How widely a token's attention is spread, in bits: 0 is one place."),
    "distance": ("Distance", "How far from itself a token looks, in tokens."),
    "cls_share": (
        "To the first token",
        "Share of the attention that goes to the special token in front: [CLS] in BERT.",
    ),
    "sep_share": (
        "To separators",
        "Share that goes to the separators ([SEP] in BERT), where heads look that have nothing to say "
        "(Clark et al. 2019).",
    ),
    "previous_share": ("To the token before", "Share that goes to the token before."),
    "next_share": ("To the token after", "Share that goes to the token after."),
    "self_share": ("To itself", "Share that goes to the token itself."),
}
SYNTAX = (
    "Syntax",
    (
        "Share of words whose most attended word is their head in the file's tree, or that their head attends"
        " to most; the better of the two."
    ),
)

_MEASURE, _OF = "head_profiles.measure", "head_profiles.of"
_CELLS = 4096  # weights a head of one text from which distances between heads are taken, at most
_FILE_ROWS = 8  # tokens of each text of a file from which they are taken


def page():
    opened = attention_controls.page_inputs(strip=False)
    if opened is None:
        return
    shared, trace = opened
    names = {"text": "This text", "file": "A file"}
    st.segmented_control(
        "Over",
        list(names),
        format_func=names.get,
        **state.bind_setting(_OF, "w_head_profiles_of", "text", tuple(names)),
        help="A link cannot hold a file: whoever opens it is asked for one.",
    )
    found = _of_file(shared) if state.setting(_OF, "text") == "file" else _of_text(shared, trace)
    if found is None:
        return
    _measures(found)
    _table(found, shared.name)
    if found.syntax is not None:
        _relations(found.syntax)
    attention_controls.warning_link()
    if found.num_texts > 1:
        st.caption(f"{count(found.num_texts, 'text')}, {count(found.num_tokens, 'token')}")
    else:
        attention_controls.footer(shared, trace)


def _of_text(shared, trace):
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks)
    tokens = max(8, min(64, _CELLS // trace.length))
    snippets.give(shared, _measure(MEASURES), tokens, trace)

    def work(progress):
        return profile_trace(trace, tokens, progress)

    return jobs.result("head_profiles", key, "Comparing heads", work)


def _of_file(shared):
    limits = state.limits()
    name, data = file_input.uploaded(
        "head_profiles",
        "A file of texts (a text a line, CSV, JSON lines), or CoNLL-U with dependency trees",
        ("txt", "csv", "tsv", "jsonl", "conllu"),
    )
    if not data:
        st.info(
            f"Give a file to see what the heads do over many texts; the first {limits.max_rows:,} are read. With a"
            " CoNLL-U file you also see which follow its syntax.",
            icon=":material/upload_file:",
        )
        return None
    rows, notes = _read(name, data, limits)
    for note in notes:
        st.caption(note)
    measure = _measure((*MEASURES, *(["syntax"] if any(row.parsed is not None for row in rows) else [])))
    bounds = {"most_rows": limits.max_rows, "max_characters": limits.max_row_characters}
    snippets.give(shared, measure, _FILE_ROWS, file=name, bounds=bounds)
    key = (shared.name, state.view().precision, hashlib.sha256(data).hexdigest(), name)

    def work(progress):
        return shared.run(head_profiles, rows=rows, tokens_per_text=_FILE_ROWS, progress=progress)

    return jobs.result("head_profiles", key, "Reading the file", work)


def _read(name, data, limits):
    """(``TextRow``s, what to say of them)."""
    found = read_rows(data, file_kind(name), most_rows=limits.max_rows, max_characters=limits.max_row_characters)
    notes = [f"{count(found.left_out, 'more text')} in the file: not read."] if found.left_out else []
    if found.problems:
        notes.append(
            f"{count(len(found.problems), 'line')} could not be read;"
            f" the first: {escape_markdown(found.problems[0][1])}"
        )
    return found.rows, notes


def _measure(measures):
    """The name of the measure that is shown."""
    name = state.setting(_MEASURE, "entropy")
    return name if name in measures else "entropy"


def _measures(found):
    measures, view, dark = _titled(found), state.view(), frame.is_dark()
    bound = state.bind_setting(_MEASURE, "w_head_profiles_measure", "entropy", tuple(measures))
    name = _measure(measures)
    heads = found.clusters.shape[1]
    left, right = st.columns([6, 5], gap="large")
    with left:
        st.selectbox("Measure", list(measures), format_func=lambda one: measures[one][0], **bound)
        title, says, values = measures[name]
        digits = 1 if values.max() >= 10 else 2
        components.grid(
            "c_head_profiles_grid",
            plots.head_cells(values),
            lambda layer, head: state.change_view(layer=layer, head=head),
            plots.ramp(dark),
            chosen=[(view.layer, view.head)],
            style="cells",
            tallest=40,
            texts=[f"{value:.{digits}f}" for value in values.ravel()],
            name=f"heads-{name}",
            hint=f"{says} Rows are layers, columns heads.",
            label=f"{title} of every head.",
        )
    with right:
        st.markdown("**Heads that do alike lie together**")
        figures.show(
            "Heads on a plane: near ones do alike",
            head_plane(found, dark, view.layer * heads + view.head),
            key="w_head_profiles_plane",
            config=export.plot_config("heads"),
            on_select=_pressed_point(found.clusters.ravel(), heads),
            selection_mode="points",
        )
        st.caption(
            "Distance: Jensen-Shannon divergence between what two heads look at, a mean over tokens, brought"
            " to a plane by classical scaling; clusters by average linkage (Clark et al. 2019, section 6). A"
            " plane cannot keep every distance."
        )
    _card(found, measures)


def _titled(found):
    """Names of the measures there are -> (title, help, float [L, N])."""
    words = {**MEASURES, "syntax": SYNTAX}
    return {name: (*words[name], values) for name, values in found.measures.items()}


def _pressed_point(clusters, heads):
    """The callback of the plane: a curve is a cluster, its points the heads of that cluster in order."""

    def pressed():
        chosen = st.session_state["w_head_profiles_plane"].selection.points
        inside = np.flatnonzero(clusters == chosen[0]["curve_number"]) if chosen else ()
        if chosen and 0 <= chosen[0]["point_index"] < len(inside):
            layer, head = divmod(int(inside[chosen[0]["point_index"]]), heads)
            state.change_view(layer=layer, head=head)

    return pressed


def _card(found, measures):
    view = state.view()
    place = (view.layer, view.head)
    with st.container(border=True):
        with inputs.heading(f"Layer {view.layer + 1}, head {view.head + 1}"):
            st.button(
                "Open this head",
                icon=":material/open_in_full:",
                key="w_head_profiles_open",
                on_click=lambda: state.change_view(page="all_heads"),
            )
        st.caption(
            " · ".join(
                f"{title[0].lower()}{title[1:]} {values[place]:.2f}"
                + (" bits" if name == "entropy" else " tokens" if name == "distance" else "")
                for name, (title, _, values) in measures.items()
            )
            + f" · cluster {cluster_names(found)[view.layer * found.clusters.shape[1] + view.head]}"
        )


def _table(found, model):
    measures = _titled(found)
    # People count layers, heads and clusters from 1.
    rows = found.to_frame()
    rows[["layer", "head", "cluster"]] += 1
    with inputs.heading("All heads as a table"):
        export.save("heads", found, {"model": model})
    columns = {"layer": "Layer", "head": "Head", "relation": "Relation followed best", "cluster": "Cluster"}
    columns |= {
        name: st.column_config.NumberColumn(title, help=says, format="%.2f")
        for name, (title, says, _) in measures.items()
    }

    def picked():
        chosen = st.session_state["w_head_profiles_table"].selection.rows
        if chosen and chosen[0] < len(rows):
            layer, head = divmod(chosen[0], found.clusters.shape[1])
            state.change_view(layer=layer, head=head)

    st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        height=320,
        key="w_head_profiles_table",
        column_config=columns,
        on_select=picked,
        selection_mode="single-row",
    )
    st.caption("Press the name of a column to sort by it; mark a row to see that head above.")


def _relations(syntax):
    rows = syntax.to_frame()
    with inputs.heading("Syntax"):
        export.save("syntax", syntax)
    rows.insert(2, "best", [f"{layer + 1}.{head + 1}" for layer, head in zip(rows.pop("layer"), rows.pop("head"))])
    st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        height=320,
        key="w_head_profiles_relations",
        column_config={
            "relation": "Relation",
            "count": "Words",
            "best": "Best head",
            "direction": "Direction",
            "accuracy": st.column_config.ProgressColumn("Right", format="percent", min_value=0, max_value=1),
            "offset": st.column_config.NumberColumn(
                "Fixed offset", help="Distance in words to the head that is right most often."
            ),
            "offset_accuracy": st.column_config.ProgressColumn(
                "Offset right", format="percent", min_value=0, max_value=1
            ),
        },
    )
    skipped = f" {count(syntax.num_skipped, 'sentence')} too long for the model." if syntax.num_skipped else ""
    st.caption(
        "For each relation the head of the model that finds it most often, beside always predicting the word"
        " at a fixed offset: only what does better than that has learnt more than a distance. Over"
        f" {count(syntax.num_sentences, 'sentence')}.{skipped}"
    )
