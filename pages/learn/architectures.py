"""Family: BERT and the models made from the same layers, by size, parts, objectives, work, speed and what changed."""

import streamlit as st

from bert_tf.architectures import ARCHITECTURES, BERT
from bert_tf.explain.models.architecture_table import (
    architecture_rows,
    changed,
    measure_speed,
    objectives,
)
from bert_tf.plots.models.architecture_table import flops_or_time, parameters_by_part
from pages.learn.snippets.architectures import snippet
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import escape_markdown

PAGE = Page(
    name="architectures",
    group="Learn",
    order=4,
    title="Architectures",
    question="The family: what came after BERT",
    summary=(
        "RoBERTa, DistilBERT, ALBERT and ELECTRA beside BERT: what each changed, sizes, parameters, work, speed here"
    ),
    presses={"": Press("open", of_texts=False)},
    analyses=("family",),
    reads_texts=False,
    settings=("speed",),
    settings_help="`1` to measure the sizes' speed",
    snippet=snippet,
)


_TOKENS, _IN_A_ROW = 128, 3
_HEADER = (
    "member",
    "size",
    "learns_from",
    "changed",
    "parameters",
    "embeddings",
    "encoder",
    "output_heads",
    "megaflop_a_token",
    "milliseconds",
    "timed",
    "layers",
    "hidden",
    "heads",
    "vocabulary",
)


def page():
    rows = cached("family rows", _TOKENS, lambda: architecture_rows(_TOKENS))
    _members(rows)
    heading = inputs.heading("Sizes")
    times = _times(rows)
    table = _table(rows, times)
    with heading:
        export.menu(
            "family",
            _HEADER,
            lambda: table,
            lambda: [dict(zip(_HEADER, row)) for row in table],
            {
                "Parameters": lambda: parameters_by_part(rows),
                "Work": lambda: flops_or_time(rows, times or None),
            },
        )
    snippets.give(_TOKENS, state.setting("architectures.speed", False))
    _figures(rows, times)
    _sizes(rows, times)


def _members(rows):
    architectures = [architecture for architecture in ARCHITECTURES.values() if architecture is not BERT]
    st.markdown(
        f"**{escape_markdown(BERT.title)}** ({escape_markdown(BERT.source)}) learns from {_words(_learnt(BERT, rows))}. "
        "What each of the others changed:"
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
    """What models of an architecture learn from that is not the architecture's own objective."""
    found = {objectives(row) for row in rows if row.architecture is architecture and row.heads != architecture.trained}
    return sorted(found)


def _words(words):
    return " and ".join(words)


def _times(rows):
    """Dict of the row's name -> seconds on this machine; empty until the visitor has asked for it."""
    if not st.toggle(
        "Measure their speed on this machine",
        **state.bind_setting("architectures.speed", "w_architectures_speed", False),
    ):
        return {}
    found = jobs.result("family speed", "speed", "Timing", lambda progress: measure_speed(rows, progress=progress))
    return {} if found is None else {row.name: seconds for row, seconds in zip(rows, found) if seconds is not None}


def _figures(rows, times):
    left, right = st.columns(2)
    with left:
        figures.show(
            "Parameters by part of each size",
            parameters_by_part(rows, frame.is_dark()),
            config=export.plot_config("family"),
            key="w_architectures_figure",
        )
    with right:
        figures.show(
            "Time of a pass of each size" if times else "Work of a pass of each size",
            flops_or_time(rows, times or None, frame.is_dark()),
            config=export.plot_config("family-speed" if times else "family-work"),
            key="w_architectures_work",
        )
    cost = (
        f"The time is the median of five passes of the encoder over {_TOKENS} tokens. A hollow point is worked out: "
        "one and three of its layers were timed, and all layers cost the same. Not timed, since one layer takes "
        f"gigabytes: {', '.join(row.name for row in rows if not row.timed)}."
        if times
        else f"The work is that of one pass of the encoder over {_TOKENS} tokens, two operations for each weight that "
        "a token meets."
    )
    st.caption(
        f"Parameters with the heads that each one is trained with. {cost} ALBERT's layers share their weights: its "
        "bar is short, its work is BERT's. How well a model answers is in none of these numbers."
    )


def _sizes(rows, times):
    columns = dict(zip(_HEADER, zip(*_table(rows, times))))
    names = [f"{architecture} {size}" for architecture, size in zip(columns.pop("member"), columns.pop("size"))]
    labels = {
        "learns_from": "Learns from",
        "parameters": "Parameters",
        "embeddings": "Embeddings",
        "encoder": "Encoder",
        "output_heads": "Output heads",
        "megaflop_a_token": "MFLOP a token",
        "milliseconds": "ms here",
        "layers": "Layers",
        "hidden": "Hidden",
        "heads": "Heads",
        "vocabulary": "Vocabulary",
        "changed": "Changed from BERT",
    }
    if not times:
        del labels["milliseconds"]
    counted = ("Parameters", "Embeddings", "Encoder", "Output heads", "Vocabulary")
    st.dataframe(
        {"Model": names, **{label: columns[name] for name, label in labels.items()}},
        hide_index=True,
        height=500,
        key="w_architectures_table",
        column_config={
            "Model": st.column_config.TextColumn(pinned=True, width=130),
            "Learns from": st.column_config.TextColumn(width=225),
            "Changed from BERT": st.column_config.TextColumn(width=420),
            **{name: st.column_config.NumberColumn(format="localized") for name in counted},
            "MFLOP a token": st.column_config.NumberColumn(format="%.1f"),
            "ms here": st.column_config.NumberColumn(format="%.3g"),
        },
    )


def _table(rows, times):
    def make():
        return [
            (
                row.architecture.title,
                row.size,
                _words(objectives(row)),
                ", ".join(changed(row)),
                row.parameters["total"],
                *row.parts.values(),
                row.flops / row.tokens / 1e6,
                1000 * times[row.name] if row.name in times else None,
                ("whole" if row.timed_whole else "by its layers") if row.name in times else None,
                row.config.num_hidden_layers,
                row.config.hidden_size,
                row.config.num_attention_heads,
                row.config.vocab_size,
            )
            for row in rows
        ]

    return cached("architectures", tuple(times), make)
