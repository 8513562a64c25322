"""Agreement: two models on every row of a file, those they differ on most first."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import agreement
from pages.compare.snippets.agreement import snippet
from ui.session import jobs, model_store, state
from ui.shell import open_row, snippets
from ui.shell.page import Page, Press
from ui.widgets import comparison, export, file_input, inputs
from ui.widgets.formatting import count, percent, title

PAGE = Page(
    name="agreement",
    group="Compare",
    order=3,
    title="Agreement",
    question="Where two models differ",
    summary=(
        "two models, or snapshots of a training, on every row of a file: share of equal first predictions, "
        "Jensen-Shannon divergence, verdicts on pairs (next sentence, sentence order), scores of replaced "
        "tokens; the rows they differ on most first, each opens in Side by side"
    ),
    presses={"": Press("choice: File: Sentences|Pairs", of_texts=False)},
    analyses=("agreement",),
    reads_texts=False,
    settings=("file", "lines", "hide", "first", "second", "one", "other"),
    settings_help=(
        "as of `dataset`; `typed` for the lines themselves; `one`, `other`: what stands in the place of "
        "`model` and `with` on this page: snapshots, `plain-english/step-1000`, or models; names that were "
        "looked up, never paths"
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
        st.caption(f"No head for masked words: {' and '.join(lacking)}. {_left(pair)}")
    call = Call.of(agreement, hide=hide, top_k=view.top_k)
    snippets.give(names, file_key, call)
    key = (*names, view.precision, file_key, call)
    if not file_input.run_requested("agreement", key, len(rows.rows) <= file_input.AT_ONCE):
        st.caption(f"{count(len(rows.rows), 'row')}, read by both models.")
        return
    found = jobs.result(
        "agreement",
        key,
        f"Asking both models about {count(len(rows.rows), 'row')}",
        lambda progress: call.run(*map(_Held, pair), rows.rows, progress=progress),
    )
    if found is not None:
        _show(pair, found)


def _left(pair):
    """What is compared of two models without masked words, in a sentence: the heads that both declare."""
    both = pair[0].bert.heads & pair[1].bert.heads
    names = {"nsp": "next-sentence scores", "sop": "sentence-order scores", "replaced": "scores of replaced tokens"}
    left = [name for head, name in names.items() if head in both]
    return f"Only {' and '.join(left)} are compared." if left else "They have no head in common that is compared here."


class _Held:
    """A model that is held for one trace at a time: other visitors come in between."""

    def __init__(self, shared):
        self._shared, bert = shared, shared.bert
        self.tokenizer, self.config, self.heads, self.name = bert.tokenizer, bert.config, bert.heads, bert.name

    def trace(self, *args, **kwargs):
        return self._shared.run(lambda bert: bert.trace(*args, **kwargs))


def _show(pair, found):
    with inputs.heading("Those they differ on most come first"):
        export.save("agreement", found)
    shown = []
    if found.masks:
        shown += [
            ("Same first prediction", percent(found.same_top_prediction)),
            ("Mean divergence", f"{found.divergence:.3f} bits"),
        ]
    if found.pairs:
        shown.append(("Same verdict on B", percent(found.same_next)))
    if found.orders:
        shown.append(("Same verdict on the order", percent(found.same_order)))
    if found.replaced_rows:
        shown.append(("Scores of tokens differ by", f"{found.replaced_difference:.3f}"))
    if not shown:
        st.info(
            "Nothing was compared: no word is hidden in these rows, and no row is a pair that both judge.",
            icon=":material/touch_app:",
        )
    with st.container(horizontal=True, gap="large"):
        for label, value in shown:
            st.metric(label, value, width="content")
    event = st.dataframe(
        _table(found),
        hide_index=True,
        width="stretch",
        height=min(60 + 36 * len(found.rows), 520),
        key="w_agreement_table",
        on_select="rerun",
        selection_mode="single-row",
        column_config=_columns(pair),
    )
    chosen = event.selection.rows
    if chosen and chosen[0] < len(found.rows):
        one = found.rows[chosen[0]]
        open_row.open_row("w_agreement_open", one.row, one.places, "side_by_side")
    else:
        st.caption(
            "Divergence: Jensen-Shannon, over the tokens both vocabularies have; 0 bits the same, 1 bit "
            "nothing in common. Press the box before a row to open it in Side by side. Agreement says nothing of who "
            "is right."
        )


def _table(found):
    rows = found.rows
    columns = {
        "row": [one.row.number for one in rows],
        "divergence": [one.divergence for one in rows],
        "a": [one.row.text_a for one in rows],
        "b": [one.row.text_b for one in rows],
        "hidden": [" ".join(token or "[MASK]" for token in one.originals) or None for one in rows],
        "one": [" ".join(mask.predictions_a[0].token for mask in one.masks) or None for one in rows],
        "other": [" ".join(mask.predictions_b[0].token for mask in one.masks) or None for one in rows],
        "is_next_a": [one.is_next_a for one in rows],
        "is_next_b": [one.is_next_b for one in rows],
        "in_order_a": [one.in_order_a for one in rows],
        "in_order_b": [one.in_order_b for one in rows],
        "replaced": [one.replaced_difference for one in rows],
        "problem": [one.problem for one in rows],
    }
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


def _columns(pair):
    one, other = (title(shared.name) for shared in pair)
    return {
        "row": st.column_config.NumberColumn("Row", width="small"),
        "a": st.column_config.TextColumn("Text A", width="medium"),
        "b": st.column_config.TextColumn("Text B", width="medium"),
        "hidden": "Hidden",
        "one": f"{one} says",
        "other": f"{other} says",
        "divergence": st.column_config.ProgressColumn("Divergence", format="%.3f bits", min_value=0, max_value=1),
        "is_next_a": st.column_config.NumberColumn(f"P(IsNext), {one}", format="percent"),
        "is_next_b": st.column_config.NumberColumn(f"P(IsNext), {other}", format="percent"),
        "in_order_a": st.column_config.NumberColumn(f"P(in order), {one}", format="percent"),
        "in_order_b": st.column_config.NumberColumn(f"P(in order), {other}", format="percent"),
        "replaced": st.column_config.NumberColumn(
            "P(replaced) differs by", format="%.3f", help="The mean over the tokens that both cut alike."
        ),
        "problem": "Problem",
    }
