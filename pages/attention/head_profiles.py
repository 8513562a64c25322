"""Head profiles: measures of every head over the text or a file, clusters of similar heads, and syntax."""

import hashlib

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.analyses import Call
from bert_tf.explain import head_profiles
from bert_tf.explain.datasets.text_rows import file_kind, read_rows
from bert_tf.plots.attention.head_profile import cluster_names, head_plane
from pages.attention.snippets.head_profiles import snippet
from ui.elements import components, tables
from ui.session import calls, jobs, state
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown, number

PAGE = Page(
    name="head_profiles",
    group="Attention",
    order=5,
    title="Head profiles",
    question="What heads do",
    terms="head roles previous next delimiter separator syntax dependency entropy patterns",
    summary=(
        "entropy, distance, shares on [CLS], [SEP], the token before, after and itself, of every head over "
        "the text or a file; heads with similar attention on a plane; with a CoNLL-U file, which heads follow its "
        "syntax"
    ),
    presses={"": Press("head")},
    analyses=("head-profiles",),
    settings=("measure", "of"),
    settings_help="`entropy`, `distance`, `cls_share`, …; `file` for a file, which a link cannot hold",
    opens_rows=True,
    snippet=snippet,
)


#: Measure -> (title, meaning). The measure "syntax" exists only with a parsed file.
MEASURES = {
    "entropy": ("Entropy", "How widely a token's attention is spread, in bits: 0 means a single token."),
    "distance": ("Distance", "How far from itself a token looks, in tokens."),
    "cls_share": (
        "To the first token",
        "Share of the attention that goes to the special token in front: [CLS] in BERT.",
    ),
    "sep_share": (
        "To separators",
        "Share that goes to the separators ([SEP] in BERT). A head often looks there when its pattern does not apply "
        "(Clark et al. 2019).",
    ),
    "previous_share": ("To the token before", "Share that goes to the token before."),
    "next_share": ("To the token after", "Share that goes to the token after."),
    "self_share": ("To itself", "Share that goes to the token itself."),
}
SYNTAX = (
    "Syntax",
    (
        "Share of words whose most attended word is their head in the file's dependency tree, or to which, of all"
        " other words, their head attends most strongly; the larger of the two."
    ),
)

_MEASURE, _OF = "head_profiles.measure", "head_profiles.of"
_CELLS = 4096  # the most weights of each head that distances between heads use, for one text
_TEXT_ROWS, _FILE_ROWS = 64, 8  # the most tokens of the text, and of each text of a file, that these distances use


def page():
    model_and_trace = attention_controls.page_inputs(strip=False)
    if model_and_trace is None:
        return
    shared, trace = model_and_trace
    names = {"text": "This text", "file": "A file"}
    st.segmented_control(
        "Over",
        list(names),
        format_func=names.get,
        **state.bind_setting(_OF, "w_head_profiles_of", "text", tuple(names)),
        help="A link cannot hold a file: the page asks whoever opens the link for one.",
    )
    profile = _of_file(shared) if _is_of_file() else _of_text(shared, trace)
    if profile is None:
        return
    texts = () if _is_of_file() else export.texts_of(trace)
    _measures(profile, texts)
    _table(profile, shared.name, texts)
    if profile.syntax is not None:
        _relations(profile.syntax, shared.name)
    attention_controls.warning()
    if _is_of_file():
        st.caption(f"{count(profile.num_texts, 'text')}, {count(profile.num_tokens, 'token')}")
    else:
        attention_controls.footer(shared, trace)


def _is_of_file():
    """Whether the texts of a file are profiled, not that of the view."""
    return state.setting(_OF, "text") == "file"


def _of_text(shared, trace):
    call = Call.of(head_profiles, tokens_per_text=max(8, min(_TEXT_ROWS, _CELLS // trace.length)))
    snippets.give(shared, call, _measure(MEASURES), trace)
    return calls.job_result(shared, call, trace, label="Comparing heads")


def _of_file(shared):
    limits = state.limits()
    name, data = file_input.uploaded(
        "head_profiles",
        "A file of texts (a text a line, CSV, JSON lines), or CoNLL-U with dependency trees",
        ("txt", "csv", "tsv", "jsonl", "conllu"),
    )
    if not data:
        st.info(
            f"Upload a file to see what the heads do over many texts; the first {limits.max_rows:,} are read. With a"
            " CoNLL-U file you also see which heads follow its syntax.",
            icon=":material/upload_file:",
        )
        st.button(
            "Try it with sentences and their dependencies",
            icon=":material/description:",
            key="w_head_profiles_sample",
            on_click=file_input.use_sample,
            args=("head_profiles", "trees.conllu"),
        )
        return None
    rows, notes = _read(name, data, limits)
    for note in notes:
        st.caption(note)
    trees = any(row.parsed is not None and row.parsed.has_dependencies for row in rows)
    measure = _measure((*MEASURES, *(["syntax"] if trees else [])))
    bounds = {"most_rows": limits.max_rows, "max_characters": limits.max_row_characters}
    call = Call.of(head_profiles, tokens_per_text=_FILE_ROWS)
    sample = file_input.is_sample(name, data)
    snippets.give(shared, call, measure, file=name, sample=sample, bounds=bounds, trees=trees)
    return jobs.result(
        call.name,
        (shared.name, state.view().precision, hashlib.sha256(data).hexdigest(), name, call),
        "Reading the file",
        lambda progress: shared.run(call.run, None, rows, progress=progress),
    )


def _read(name, data, limits):
    """The rows of a file: (``TextRow``s, sentences about rows that are missing)."""
    file_rows = read_rows(data, file_kind(name), most_rows=limits.max_rows, max_characters=limits.max_row_characters)
    notes = [f"{count(file_rows.left_out, 'more text')} in the file: not read."] if file_rows.left_out else []
    if file_rows.problems:
        notes.append(
            f"{count(len(file_rows.problems), 'line')} could not be read;"
            f" the first: {escape_markdown(file_rows.problems[0][1])}"
        )
    return file_rows.rows, notes


def _measure(measures):
    """The name of the chosen measure."""
    name = state.setting(_MEASURE, "entropy")
    return name if name in measures else "entropy"


def _measures(profile, texts):
    measures, view, dark = _titled(profile), state.view(), state.is_dark()
    widget = state.bind_setting(_MEASURE, "w_head_profiles_measure", "entropy", tuple(measures))
    name = _measure(measures)
    heads = profile.clusters.shape[1]
    left, right = st.columns([6, 5], gap="large")
    with left:
        st.selectbox("Measure", list(measures), format_func=lambda measure: measures[measure][0], **widget)
        title, meaning, values = measures[name]
        digits = 1 if values.max() >= 10 else 2
        export.save_drawing("Heads", f"heads-{name}", ("png",))
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
            hint=f"{meaning} Rows are layers, columns heads; the stronger the colour, the greater, from "
            f"{number(values.min(), digits)} to {number(values.max(), digits)}.",
            label=f"{title} of every head.",
            caption=f"{title} · {export.caption('heads', texts=texts)}",
        )
    with right:
        st.markdown("**Heads with similar attention lie together**")
        figures.show(
            "Heads on a plane: similar heads lie together",
            head_plane(profile, dark, view.layer * heads + view.head),
            key="w_head_profiles_plane",
            config=export.plot_config("heads"),
            on_select=_pressed_point(profile.clusters.ravel(), heads),
            selection_mode="points",
        )
        st.caption(
            "Heads whose attention is similar lie close together, and each cluster has a colour. A plane cannot keep "
            "every distance.",
            help="Distance: the Jensen-Shannon divergence of two heads' attention, averaged over at most "
            f"{_TEXT_ROWS} tokens of the text, or {_FILE_ROWS} of each text of a file. The plane is a projection by "
            "classical scaling. Clusters: average linkage (Clark et al. 2019, section 6).",
        )
    _card(profile, measures)


def _titled(profile):
    """The measures of a ``HeadProfile``: name -> (title, meaning, float [L, N])."""
    texts = {**MEASURES, "syntax": SYNTAX}
    return {name: (*texts[name], values) for name, values in profile.measures.items()}


def _pressed_point(clusters, heads):
    """The callback of the plane: each curve is a cluster, and its points are the heads of that cluster in order."""

    def pressed():
        points = st.session_state["w_head_profiles_plane"].selection.points
        members = np.flatnonzero(clusters == points[0]["curve_number"]) if points else ()
        if points and 0 <= points[0]["point_index"] < len(members):
            layer, head = divmod(int(members[points[0]["point_index"]]), heads)
            state.change_view(layer=layer, head=head)

    return pressed


def _card(profile, measures):
    view = state.view()
    layer_and_head = (view.layer, view.head)
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
                f"{title[0].lower()}{title[1:]} {values[layer_and_head]:.2f}"
                + (" bits" if name == "entropy" else " tokens" if name == "distance" else "")
                for name, (title, _, values) in measures.items()
            )
            + f" · cluster {cluster_names(profile)[view.layer * profile.clusters.shape[1] + view.head]}"
        )


def _table(profile, model, texts):
    measures = _titled(profile)
    # The screen counts layers, heads and clusters from 1.
    rows = profile.to_frame()
    rows[["layer", "head", "cluster"]] += 1
    inputs.heading("All heads as a table")
    export.save("heads", profile, {"model": model}, texts)
    columns = {"layer": "Layer", "head": "Head", "relation": "Relation followed best", "cluster": "Cluster"}
    columns |= {
        name: st.column_config.NumberColumn(title, help=meaning, format="%.2f")
        for name, (title, meaning, _) in measures.items()
    }

    def select_head():
        selected_rows = st.session_state["w_head_profiles_table"].selection.rows
        if selected_rows and selected_rows[0] < len(rows):
            layer, head = divmod(selected_rows[0], profile.clusters.shape[1])
            state.change_view(layer=layer, head=head)

    tables.show(
        rows,
        hide_index=True,
        width="stretch",
        height=tables.height(len(rows), 320),
        key="w_head_profiles_table",
        column_config=columns,
        on_select=select_head,
        selection_mode="single-row",
    )
    st.caption("Press the name of a column to sort by it; select a row to see its head above.")


def _relations(syntax, model):
    rows = syntax.to_frame()
    inputs.heading("Syntax")
    export.save("syntax", syntax, {"model": model})
    rows.insert(2, "best", [f"{layer + 1}.{head + 1}" for layer, head in zip(rows.pop("layer"), rows.pop("head"))])
    tables.show(
        rows,
        hide_index=True,
        width="stretch",
        height=tables.height(len(rows), 320),
        key="w_head_profiles_relations",
        column_config={
            "relation": "Relation",
            "count": "Words",
            "best": "Best head",
            "direction": "Direction",
            "accuracy": st.column_config.ProgressColumn("Right", format="percent", min_value=0, max_value=1),
            "offset": st.column_config.NumberColumn(
                "Fixed offset", help="The distance in words at which the syntactic head is found most often."
            ),
            "offset_accuracy": st.column_config.ProgressColumn(
                "Offset right", format="percent", min_value=0, max_value=1
            ),
        },
    )
    skipped = ""
    if syntax.num_skipped:
        skipped = f" Left out, as the model cannot read them whole: {count(syntax.num_skipped, 'sentence')}."
    st.caption(
        "Each relation with the attention head that finds it most often, beside the baseline that always predicts the"
        " word at a fixed offset: a head that is not better than the baseline may have learnt only a distance. Over"
        f" {count(syntax.num_sentences, 'sentence')}.{skipped}"
    )
