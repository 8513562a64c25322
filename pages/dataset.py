"""Data: a whole file asked at once, its rows to browse and to open."""

import numpy as np
import streamlit as st

from bert_tf.explain import score_rows, summarise_rows
from bert_tf.explain.dataset import ASK
from bert_tf.plots.effects import spread
from ui import export, files, inputs, jobs, opening, snippets, state
from ui.words import count, percent, title

_ASK = {
    "masks": "Hidden words",
    "next": "Next sentence",
    "order": "Sentence order",
    "replaced": "Replaced tokens",
    "perplexity": "Pseudo-perplexity",
}
_DEFAULT = "masks,next,order,replaced"
_OF_PAIR = ("next", "order")
_AT_ONCE = 40  # rows that are asked about without a press on Run
_HEADER = ("row", "text_a", "text_b", "tokens", "hidden", "rank_of_original", "probability_of_original",
           "guesses", "probabilities", "is_next", "perplexity", "log_likelihood", "problem", "in_order",
           "suspected", "most_suspected", "replaced_probability")  # fmt: skip


def page():
    st.title("A whole file at once", anchor=False)
    read = files.rows("dataset")
    if read is None:
        return
    rows, file_key = read
    shared = inputs.model()
    ask, hide = _settings(shared, rows)
    if not ask:
        return
    view = state.view()
    snippets.give(shared, file_key, ask, hide)
    key = (shared.name, view.precision, file_key, ask, hide, view.top_k)
    if not files.asked("dataset", key, len(rows.rows) <= _AT_ONCE and "perplexity" not in ask):
        st.caption(
            f"{count(len(rows.rows), 'row')}. Pseudo-perplexity takes as many passes as a row has tokens."
        )
        return
    results = jobs.result(
        "dataset",
        key,
        f"Asking {title(shared.name)} about {count(len(rows.rows), 'row')}",
        lambda progress: shared.run(score_rows, rows.rows, ask, hide, view.top_k, progress=progress),
    )
    if results is not None:
        _show(shared, results)


def _settings(shared, rows):
    able = [name for name in _ASK if ASK[name] in shared.bert.heads]
    if not able:
        st.warning(
            f"{title(shared.name)} has no head for words, pairs or tokens, so there is nothing to ask it here. Choose "
            "another in the sidebar.",
            icon=":material/block:",
        )
        return (), "given"
    missing = [_ASK[name].lower() for name in ("masks", "perplexity") if name not in able]
    missing += ["pairs of texts"] if not set(_OF_PAIR) & set(able) else []
    if missing:
        st.caption(f"{title(shared.name)} has no head for {' and '.join(missing)}.")
    if not any(row.text_b for row in rows.rows):
        able = [name for name in able if name not in _OF_PAIR]
    if not able:
        st.info("This model judges pairs only, and no row here has a text B.", icon=":material/touch_app:")
        return (), "given"
    wanted = state.setting("dataset.ask", _DEFAULT).split(",")
    wanted = [name for name in able if name in wanted]
    if st.session_state.get("w_dataset_ask") != wanted:
        st.session_state["w_dataset_ask"] = wanted

    def pull():
        chosen = st.session_state["w_dataset_ask"]
        # What the file or the model cannot answer keeps its place in the choice.
        rest = [name for name in state.setting("dataset.ask", _DEFAULT).split(",") if name not in able]
        kept = [name for name in _ASK if name in (*chosen, *rest)]
        state.set_setting("dataset.ask", ",".join(kept) or "none", _DEFAULT)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        ask = st.segmented_control(
            "Asked for",
            able,
            format_func=_ASK.get,
            selection_mode="multi",
            key="w_dataset_ask",
            on_change=pull,
        )
        hide = files.hide_picker("dataset") if "masks" in ask else "given"
    if not ask:
        st.info("Choose what to ask the model for.", icon=":material/touch_app:")
    return tuple(ask), hide


def _show(shared, results):
    summary = summarise_rows(results)
    with inputs.heading(count(summary.rows, "row")):
        export.menu(
            "rows",
            _HEADER,
            lambda: map(_line, results),
            lambda: _record(shared, results, summary),
            lambda: _figure(results),
        )
    _figures(summary)
    shown = _filtered(results)
    if not shown:
        st.info("No row is left under this filter.", icon=":material/filter_alt_off:")
        return
    event = st.dataframe(
        _table(shown),
        hide_index=True,
        width="stretch",
        height=min(60 + 36 * len(shown), 520),
        key="w_dataset_table",
        on_select="rerun",
        selection_mode="single-row",
        column_config=_COLUMNS | (_OF_PAIRS if any(one.row.text_b for one in shown) else {}),
    )
    chosen = event.selection.rows
    if chosen and chosen[0] < len(shown):
        one = shown[chosen[0]]
        opening.open_row("w_dataset_open", one.row, one.places)
    else:
        st.caption(
            "Press a column's name to sort, and the box before a row to open that row in another view. Every "
            "row is asked alone; a first guess that is not the hidden word may still be a good one."
        )
    problems = [one for one in results if one.problem]
    if problems:
        st.caption(f"{count(len(problems), 'row')} could not be answered in full: the last column says why.")


def _figure(results):
    """How the rows are spread over the first of the numbers that was asked for."""
    ranks = [mask.original_rank for one in results for mask in one.masks if mask.original is not None]
    if ranks:
        return spread(np.log10(ranks), "rank of the hidden word, log10")
    shares = [mask.predictions[0].probability for one in results for mask in one.masks]
    if shares:
        return spread(shares, "probability of the first guess")
    others = {"is_next": "P(IsNext)", "in_order": "P(in order)", "perplexity": "pseudo-perplexity",
              "suspected": "tokens that look replaced"}  # fmt: skip
    numbers = {title: [getattr(one, name) for one in results] for name, title in others.items()}
    title = next((title for title, found in numbers.items() if any(one is not None for one in found)), "numbers")
    return spread([one for one in numbers.get(title, ()) if one is not None], title)


def _figures(summary):
    shown = []
    if summary.masks:
        shown += [
            ("First guess right", percent(summary.first)),
            ("Among the guesses", percent(summary.among)),
        ]
    if summary.next:
        shown.append(("B follows A", percent(summary.follows)))
    if summary.order:
        shown.append(("In order", percent(summary.ordered)))
    if summary.scored:
        shown.append(("Tokens rather replaced", percent(summary.suspected)))
    if summary.perplexity:
        shown.append(("Pseudo-perplexity", f"{summary.perplexity:,.1f}"))
    if shown:
        with st.container(horizontal=True, gap="large"):
            for label, value in shown:
                st.metric(label, value, width="content")


_SHOW = {
    "all": "All rows",
    "wrong": "First guess wrong",
    "right": "First guess right",
    "problem": "With a problem",
}


def _filtered(results):
    kinds = ["all", *(kind for kind in _SHOW if kind != "all" and any(_is(one, kind) for one in results))]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        words = st.text_input(
            "Containing",
            max_chars=100,
            width=260,
            **state.bound_setting("dataset.words", "w_dataset_words", ""),
        )
        kind = "all"
        if len(kinds) > 1:
            kind = st.segmented_control(
                "Show",
                kinds,
                format_func=_SHOW.get,
                required=True,
                **state.bound_setting("dataset.show", "w_dataset_show", "all", kinds),
            )
    wanted = (words or "").casefold().strip()
    return [
        one
        for one in results
        if _is(one, kind) and wanted in f"{one.row.text_a}\n{one.row.text_b or ''}".casefold()
    ]


def _is(one, kind):
    ranks = [mask.original_rank for mask in one.masks if mask.original is not None]
    return {
        "all": True,
        "wrong": any(rank > 1 for rank in ranks),
        "right": bool(ranks) and all(rank == 1 for rank in ranks),
        "problem": one.problem is not None,
    }[kind]


def _table(shown):
    """Columns of the rows; those without anything in them are left out."""
    columns = {
        "row": [one.row.number for one in shown],
        "a": [one.row.text_a for one in shown],
        "b": [one.row.text_b for one in shown],
        "hidden": [" ".join(mask.original or "[MASK]" for mask in one.masks) or None for one in shown],
        "guess": [" ".join(mask.predictions[0].token for mask in one.masks) or None for one in shown],
        "share": [one.masks[0].predictions[0].probability if one.masks else None for one in shown],
        "rank": [max((m.original_rank for m in one.masks if m.original), default=None) for one in shown],
        "next": [one.is_next for one in shown],
        "order": [one.in_order for one in shown],
        "suspected": [one.suspected for one in shown],
        "most_suspected": [one.most_suspected and one.most_suspected[0] for one in shown],
        "replaced": [one.most_suspected and one.most_suspected[1] for one in shown],
        "perplexity": [one.perplexity for one in shown],
        "tokens": [one.tokens or None for one in shown],
        "problem": [one.problem for one in shown],
    }
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


_COLUMNS = {
    "row": st.column_config.NumberColumn("Row", width="small"),
    "a": st.column_config.TextColumn("Text A", width="large"),
    "b": st.column_config.TextColumn("Text B", width="medium"),
    "hidden": "Hidden",
    "guess": "First guess",
    "share": st.column_config.ProgressColumn("Its probability", format="percent", min_value=0, max_value=1),
    "rank": st.column_config.NumberColumn(
        "Rank of the hidden", help="Where the hidden token stands among all tokens; of several, the worst."
    ),
    "next": st.column_config.ProgressColumn("P(IsNext)", format="percent", min_value=0, max_value=1),
    "order": st.column_config.ProgressColumn("P(in order)", format="percent", min_value=0, max_value=1),
    "suspected": st.column_config.NumberColumn(
        "Rather replaced", help="How many tokens have a probability above one half to have been put there."
    ),
    "most_suspected": "Most suspected",
    "replaced": st.column_config.ProgressColumn("P(replaced)", format="percent", min_value=0, max_value=1),
    "perplexity": st.column_config.NumberColumn("Pseudo-perplexity", format="%.1f"),
    "tokens": "Tokens",
    "problem": "Problem",
}

_OF_PAIRS = {"a": st.column_config.TextColumn("Text A", width="medium")}


def _line(one):
    masks = one.masks
    return (
        one.row.number,
        one.row.text_a,
        one.row.text_b or "",
        one.tokens,
        " ".join(mask.original or "[MASK]" for mask in masks),
        " ".join(str(mask.original_rank or "") for mask in masks),
        " ".join("" if mask.original is None else f"{mask.original_probability:.6g}" for mask in masks),
        " / ".join(" ".join(guess.token for guess in mask.predictions) for mask in masks),
        " / ".join(" ".join(f"{guess.probability:.6g}" for guess in mask.predictions) for mask in masks),
        "" if one.is_next is None else one.is_next,
        "" if one.perplexity is None else one.perplexity,
        "" if one.log_likelihood is None else one.log_likelihood,
        one.problem or "",
        "" if one.in_order is None else one.in_order,
        "" if one.suspected is None else one.suspected,
        *(one.most_suspected or ("", "")),
    )


def _record(shared, results, summary):
    return {
        "model": shared.name,
        "summary": vars(summary),
        "rows": [
            {
                "row": one.row.number,
                "text_a": one.row.text_a,
                "text_b": one.row.text_b,
                "tokens": one.tokens,
                "masks": [
                    {
                        "position": mask.position,
                        "original": mask.original,
                        "rank": mask.original_rank,
                        "probability": mask.original_probability,
                        "predictions": [[guess.token, guess.probability] for guess in mask.predictions],
                    }
                    for mask in one.masks
                ],
                "is_next": one.is_next,
                "in_order": one.in_order,
                "replaced": None if one.replaced is None else [list(pair) for pair in one.replaced],
                "perplexity": one.perplexity,
                "log_likelihood": one.log_likelihood,
                "problem": one.problem,
            }
            for one in results
        ],
    }
