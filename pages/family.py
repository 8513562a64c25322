"""Family: BERT and the models made from the same layers, by size, work and what each changed."""

import streamlit as st

from bert_tf.explain.family_table import family_rows, measure_speed
from bert_tf.family import MEMBERS
from bert_tf.plots.family import parameters_and_work
from ui import export, frame, inputs, jobs
from ui.kept import kept
from ui.words import plain

_TOKENS, _IN_A_ROW = 128, 3
_LARGEST = 150_000_000  # parameters of the sizes that are timed: the others take too much memory for a visitor's press
_OBJECTIVES = {
    "mlm": "hidden words",
    "nsp": "next sentence",
    "sop": "sentence order",
    "replaced": "replaced words",
}
_HEADER = (
    "member", "size", "layers", "hidden", "heads", "vocabulary", "parameters", "embeddings", "encoder", "gflop",
    "milliseconds",
)  # fmt: skip


def page():
    st.title("The family", anchor=False)
    rows = family_rows(_TOKENS)
    _members()
    times = _times(rows)
    with inputs.heading("Sizes"):
        export.menu(
            "family",
            _HEADER,
            lambda: [tuple(row) for row in _table(rows, times)],
            lambda: [dict(zip(_HEADER, row)) for row in _table(rows, times)],
            lambda: parameters_and_work(rows),
        )
    st.plotly_chart(
        parameters_and_work(rows, frame.is_dark()), config=export.plot_config("family"), key="w_family_figure"
    )
    st.caption(
        f"Parameters with the heads that each one's pre-training trains; the work of one pass of the encoder over "
        f"{_TOKENS} tokens. ALBERT's layers share their weights: it stands far to the left of BERT, and as high."
    )
    columns = list(zip(*_table(rows, times)))
    labels = ("Member", "Size", "Layers", "Hidden", "Heads", "Vocabulary", "Parameters", "Embeddings", "Encoder",
              "GFLOP", "ms here")  # fmt: skip
    shown = {label: column for label, column in zip(labels, columns) if times or label != "ms here"}
    st.dataframe(
        shown,
        hide_index=True,
        key="w_family_table",
        column_config={
            **{name: st.column_config.NumberColumn(format="localized") for name in labels[5:9]},
            "GFLOP": st.column_config.NumberColumn(format="%.1f"),
            "ms here": st.column_config.NumberColumn(format="%.0f"),
        },
    )


def _members():
    members = list(MEMBERS.values())[1:]
    columns = [column for _ in range(0, len(members), _IN_A_ROW) for column in st.columns(_IN_A_ROW)]
    for column, member in zip(columns, members):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{plain(member.title)}**")
            st.markdown("\n".join(f"- {plain(change)}" for change in member.changes))
            learns = [_OBJECTIVES[head] for head in member.trained if head in _OBJECTIVES]
            if member.reads != "both":
                learns = ["every word"]
            st.caption(f"Learns from {' and '.join(learns)}. {plain(member.source)}.")


def _times(rows):
    """dict of the row's name -> seconds on this machine; empty until the visitor has asked for it."""
    small = [row for row in rows if row.parameters["total"] <= _LARGEST]
    if not st.toggle(f"Measure their speed on this machine ({len(small)} sizes)", key="w_family_speed"):
        return {}
    found = jobs.result(
        "family speed", "speed", "Timing", lambda progress: measure_speed(small, _TOKENS, progress=progress)
    )
    return {} if found is None else {row.name: seconds for row, seconds in zip(small, found)}


def _table(rows, times):
    def make():
        return [
            (
                row.member.title, row.size, row.config.num_hidden_layers, row.config.hidden_size,
                row.config.num_attention_heads, row.config.vocab_size, row.parameters["total"],
                row.parameters["embeddings"], row.parameters["encoder"], row.flops / 1e9,
                1000 * times[row.name] if row.name in times else None,
            )
            for row in rows
        ]  # fmt: skip

    return kept("family", tuple(times), make)
