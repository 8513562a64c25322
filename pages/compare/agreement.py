"""Agreement: the predictions of two models for every row of a file, the rows where they differ most first."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import agreement
from pages.compare.snippets.agreement import snippet
from ui.elements import tables
from ui.session import jobs, model_store, state
from ui.shell import open_row, snippets
from ui.shell.page import Page, Press
from ui.widgets import comparison, export, file_input, inputs
from ui.widgets.formatting import count, share, title

PAGE = Page(
    name="agreement",
    group="Compare",
    order=3,
    title="Agreement",
    question="Where two models differ",
    terms="two models disagree overlap predictions file",
    summary=(
        "two models, or snapshots of a training, on every row of a file: share of equal first predictions, "
        "Jensen-Shannon divergence, predictions for pairs (next sentence, sentence order), scores of replaced "
        "tokens; the rows where they differ most come first, each opens in Side by side"
    ),
    presses={"": Press("choice: File: Sentences|Pairs", of_texts=False)},
    analyses=("agreement",),
    reads_texts=False,
    settings=("file", "lines", "hide", "first", "second", "one", "other"),
    settings_help=(
        "as of `dataset`; `typed` for the lines themselves; `one`, `other`: the two models or snapshots "
        "(`plain-english/step-1000`) that this page uses instead of `model` and `with`; names of known models, "
        "never paths"
    ),
    long_settings={"lines": "the typed lines"},
    snippet=snippet,
)


def page():
    installed = model_store.installed()
    if not comparison.has_two_models(installed):
        st.info(
            "A comparison needs two models, and only one is installed here. See Models.",
            icon=":material/compare_arrows:",
        )
        return
    names = comparison.pickers(installed, "agreement")
    read = file_input.rows("agreement", typed=True)
    if read is None:
        return
    rows, file_key = read
    hide = file_input.hide_picker("agreement")
    view = state.view()
    pair = [inputs.model(name) for name in names]
    lacking = [title(shared.name) for shared in pair if "mlm" not in shared.bert.heads]
    if lacking:
        st.caption(f"No head for masked words: {' and '.join(lacking)}. {_compared_heads(pair)}")
    call = Call.of(agreement, hide=hide, top_k=view.top_k)
    snippets.give(names, file_key, call)
    key = (*names, view.precision, file_key, call)
    if not file_input.run_requested("agreement", key, len(rows.rows) <= file_input.AT_ONCE):
        st.caption(f"{count(len(rows.rows), 'row')}, read by both models.")
        return
    result = jobs.result(
        "agreement",
        key,
        f"Asking both models about {count(len(rows.rows), 'row')}",
        lambda progress: call.run(*map(comparison.LockedPerTrace, pair), rows.rows, progress=progress),
    )
    if result is not None:
        _show(pair, result)


def _compared_heads(pair):
    """A sentence: which predictions are compared if not both models have a head for masked words."""
    both = pair[0].bert.heads & pair[1].bert.heads
    names = {"nsp": "next-sentence scores", "sop": "sentence-order scores", "replaced": "scores of replaced tokens"}
    compared = [name for head, name in names.items() if head in both]
    if not compared:
        return "They have no head in common that is compared here."
    return f"Only {' and '.join(compared)} are compared."


def _show(pair, result):
    inputs.heading("The rows where they differ most come first")
    export.save("agreement", result, {"models": tuple(shared.name for shared in pair)})
    metrics = []
    if result.masks:
        metrics += [
            ("Same first prediction", share(result.same_top_prediction)),
            ("Mean divergence", f"{result.divergence:.3f} bits"),
        ]
    if result.pairs:
        metrics.append(("Same next-sentence prediction", share(result.same_next)))
    if result.orders:
        metrics.append(("Same sentence-order prediction", share(result.same_order)))
    if result.replaced_rows:
        metrics.append(("Scores of tokens differ by", f"{result.replaced_difference:.3f}"))
    if not metrics:
        st.info(
            "Nothing was compared: no word is hidden in these rows, and no row is a pair that both models read.",
            icon=":material/touch_app:",
        )
    with st.container(horizontal=True, gap="large"):
        for label, value in metrics:
            st.metric(label, value, width="content")
    table = _table(result)
    event = tables.show(
        table,
        hide_index=True,
        width="stretch",
        height=tables.height(len(result.rows), 520),
        key=tables.key_of("w_agreement_table", ((row.row.number, row.row.text_a) for row in result.rows)),
        on_select="rerun",
        selection_mode="single-row",
        column_config=_columns(pair, "text_b" in table),
    )
    chosen = event.selection.rows
    if chosen and chosen[0] < len(result.rows):
        row = result.rows[chosen[0]]
        open_row.open_row("w_agreement_open", row.row, row.places, "side_by_side")
    else:
        st.caption(
            "Press the box before a row to open it in Side by side. Agreement does not show which model is right."
        )


def _table(result):
    """The table of the result without columns that have no value: what differs is before the texts, which are long."""
    table = result.to_frame().drop(columns="same_top_prediction").replace("", None)
    first = ["row", "divergence_bits", "hidden", "prediction_a", "prediction_b"]
    return table[[*first, *table.columns.drop(first)]].dropna(axis="columns", how="all")


def _columns(pair, of_pairs):
    text_width = 155 if of_pairs else "large"
    one, other = (title(shared.name) for shared in pair)
    return {
        "row": st.column_config.NumberColumn("Row", width=50),
        "text_a": st.column_config.TextColumn("Text A", width=text_width),
        "text_b": st.column_config.TextColumn("Text B", width=text_width),
        "hidden": "Hidden",
        "prediction_a": st.column_config.TextColumn(one, help="The first prediction of this model."),
        "prediction_b": st.column_config.TextColumn(other, help="The first prediction of this model."),
        "divergence_bits": st.column_config.ProgressColumn(
            "Divergence",
            format="%.3f bits",
            width=135,
            min_value=0,
            max_value=1,
            help="The Jensen-Shannon divergence over the tokens that both vocabularies have. 0 bits: the same "
            "distribution. 1 bit: no token in common.",
        ),
        "is_next_a": st.column_config.NumberColumn("P(IsNext)", format="percent", help=f"That of {one}."),
        "is_next_b": st.column_config.NumberColumn("The other's", format="percent", help=f"P(IsNext) of {other}."),
        "in_order_a": st.column_config.NumberColumn("P(in order)", format="percent", help=f"That of {one}."),
        "in_order_b": st.column_config.NumberColumn("The other's", format="percent", help=f"P(in order) of {other}."),
        "replaced_difference": st.column_config.NumberColumn(
            "P(replaced) differs by", format="%.3f", help="The mean over the tokens that both models have in common."
        ),
        "problem": "Problem",
    }
