"""Architectures: BERT and the models made from the same layers: changes, sizes, objectives, operations and speed."""

import streamlit as st

from bert_tf.architectures import ARCHITECTURES, BERT
from bert_tf.explain.models.architecture_table import (
    ArchitectureTable,
    architecture_rows,
    measure_speed,
    objectives,
)
from pages.learn.snippets.architectures import snippet
from ui.elements import tables
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import escape_markdown

PAGE = Page(
    name="architectures",
    group="Learn",
    order=7,
    title="Architectures",
    question="The family: BERT, its relatives and its successors",
    terms="RoBERTa ALBERT DistilBERT ELECTRA ModernBERT DeBERTa family members variants",
    summary=(
        "RoBERTa, DistilBERT, ALBERT, ELECTRA, ModernBERT, DeBERTa-v3 and others beside BERT: what each changed, "
        "sizes, parameters, work, speed here"
    ),
    presses={"": Press("open", of_texts=False)},
    analyses=("architectures",),
    reads_texts=False,
    settings=("speed",),
    settings_help="`1` to measure the sizes' speed",
    snippet=snippet,
)


_TOKENS, _IN_A_ROW = 128, 3


def page():
    rows = cached("family rows", _TOKENS, lambda: architecture_rows(_TOKENS))
    _members(rows)
    inputs.heading("Sizes")
    table = ArchitectureTable(rows, _TOKENS, _seconds(rows))
    export.save("architectures", table)
    snippets.give(_TOKENS, state.setting("architectures.speed", False))
    _figures(table)
    _sizes(table)


def _members(rows):
    architectures = [architecture for architecture in ARCHITECTURES.values() if architecture is not BERT]
    st.markdown(
        f"**{escape_markdown(BERT.title)}** ({escape_markdown(BERT.source)}) learns from {_words(_learnt(BERT, rows))}."
        " What each of the others changed:"
    )
    columns = [column for _ in range(0, len(architectures), _IN_A_ROW) for column in st.columns(_IN_A_ROW)]
    for column, architecture in zip(columns, architectures):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{escape_markdown(architecture.title)}**")
            st.markdown("\n".join(f"- {escape_markdown(change)}" for change in architecture.changes))
            learnt = "; ".join(
                [_words(_learnt(architecture, rows))]
                + [f"its generator from {_words(words)}" for words in _generators(architecture, rows)]
            )
            st.caption(f"Learns from {learnt}. {escape_markdown(architecture.source)}.")


def _learnt(architecture, rows):
    return next(objectives(row) for row in rows if row.architecture is architecture)


def _generators(architecture, rows):
    """The objectives of an architecture's generators, a sorted list."""
    objective_sets = {
        objectives(row) for row in rows if row.architecture is architecture and row.heads != architecture.trained
    }
    return sorted(objective_sets)


def _words(words):
    return " and ".join(words)


def _seconds(rows):
    """The seconds of a forward pass of each row on this machine; None until the visitor turns the timing on."""
    if not st.toggle(
        "Measure their speed on this machine",
        **state.bind_setting("architectures.speed", "w_architectures_speed", False),
    ):
        return None
    seconds = jobs.result(
        "family speed", "speed", "Timing", lambda progress: measure_speed(rows, progress=progress), skeleton=False
    )
    return None if seconds is None else tuple(seconds)


def _figures(table):
    timed = table.seconds is not None
    left, right = st.columns(2)
    with left:
        figures.show(
            "Parameters by part of each size",
            table.figure("parts", state.is_dark()),
            config=export.plot_config("architectures"),
            key="w_architectures_figure",
        )
    with right:
        figures.show(
            "Time of a pass of each size" if timed else "Work of a pass of each size",
            table.figure("work", state.is_dark()),
            config=export.plot_config("architectures-speed" if timed else "architectures-work"),
            key="w_architectures_work",
        )
    if timed:
        measured = f"The time is the median of five passes of the encoder over {_TOKENS} tokens."
        more = "A hollow point is an estimate from the times of one and of three layers, as all layers cost the same."
        if missing := ", ".join(row.name for row in table.rows if not row.timed):
            more += f" Not timed, because one layer takes gigabytes: {missing}."
    else:
        measured = f"The work is that of one pass of the encoder over {_TOKENS} tokens."
        more = "Each weight costs two operations for each token."
    st.caption(
        f"{measured} None of these numbers measures the quality of the predictions.",
        help=f"{more} The parameters include the heads of the pre-training. ALBERT's layers share their weights: it "
        "has few parameters and as much work as BERT.",
    )


def _sizes(table):
    rows = table.to_records()
    columns = {
        "Model": [f"{row['architecture']} {row['size']}" for row in rows],
        "Learns from": [_words(row["learns_from"]) for row in rows],
        "Parameters": [row["parameters"]["total"] for row in rows],
        "Embeddings": [row["parts"]["embeddings"] for row in rows],
        "Encoder": [row["parts"]["encoder"] for row in rows],
        "Output heads": [row["parts"]["output heads"] for row in rows],
        "MFLOP a token": [row["flops"] / table.tokens / 1e6 for row in rows],
        "ms here": [None if row["seconds"] is None else 1000 * row["seconds"] for row in rows],
        "Layers": [row["layers"] for row in rows],
        "Hidden": [row["hidden_size"] for row in rows],
        "Heads": [row["heads"] for row in rows],
        "Vocabulary": [row["vocab_size"] for row in rows],
        "Changed from BERT": [", ".join(row["changed"]) for row in rows],
    }
    if table.seconds is None:
        del columns["ms here"]
    counted = ("Parameters", "Embeddings", "Encoder", "Output heads", "Vocabulary")
    tables.show(
        columns,
        hide_index=True,
        height=500,
        key="w_architectures_table",
        column_config={
            "Model": st.column_config.TextColumn(pinned=True, width=130),
            "Learns from": st.column_config.TextColumn(width=225),
            "Changed from BERT": st.column_config.TextColumn(width=420),
            **{name: st.column_config.NumberColumn(format="localized") for name in counted},
            "MFLOP a token": st.column_config.NumberColumn(format="%.1f"),
            "ms here": st.column_config.NumberColumn(format="%.1f"),
        },
    )
