"""Data: a whole file asked at once, its rows to browse and to open."""

import dataclasses

import streamlit as st

from bert_tf.explain import score_rows, summarise_classes, summarise_rows, supported_predictions
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.datasets.dataset import DatasetPredictions, Subset, subset_of
from bert_tf.explain.datasets.subset_comparison import SubsetComparison
from pages.data import class_view, row_map_view, subsets
from pages.data.snippets.dataset import snippet
from ui.session import jobs, state, task_models
from ui.session.session_cache import cached
from ui.shell import open_row, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, file_input, inputs
from ui.widgets.formatting import (
    count,
    escape_markdown,
    share,
    title,
)

PAGE = Page(
    name="dataset",
    group="Data",
    order=1,
    title="Dataset",
    question="A whole file at once",
    summary=(
        "a file asked at once, by the heads that the model has: hidden words, next sentence, sentence order, "
        "replaced tokens, pseudo-perplexity; of a model fine-tuned to classify, every row's class, where the "
        "file has labels with accuracy, macro F1 and what is confused; beside the page, with progress and "
        "Stop; sort, filter, export, open any row in any view of a text; subsets of rows named by hand, their "
        "numbers beside those of all; the rows as a map, each a point by PCA, UMAP or t-SNE in the plane or "
        "in space, coloured by what is known of it, and the rows nearest to one"
    ),
    presses={"": Press("choice: File: Sentences|Pairs", of_texts=False)},
    analyses=("dataset",),
    reads_texts=False,
    settings=(
        "file",
        "ask",
        "hide",
        "first",
        "second",
        "words",
        "show",
        "curve",
        "threshold",
        "subsets",
        "subset",
        "look",
        "colour",
        "way",
        "space",
        "vector",
        "layer",
        "row",
    ),
    settings_help=(
        "a sample, or `upload`, which a link cannot hold; some of "
        "`masks,next,order,replaced,classes,perplexity`; `last` `given`; columns of text A and B; filters; "
        "the class whose curves are drawn; from which probability on it is taken, `0.35`; subsets that were "
        "named, `reviews.csv/long ones/1-4.7` with `;` between; the one that is looked at; `map`; what "
        "colours its points (`label`, `predicted`, `right`, `is_next`, …); `umap` or `tsne`; `1` for three "
        "dimensions; `first` for the first token's hidden state; hidden state (0 the embeddings); number of "
        "the row that is looked at"
    ),
    long_settings={"subsets": "the subsets"},
    snippet=snippet,
)


_ASK = {
    "masks": "Hidden words",
    "next": "Next sentence",
    "order": "Sentence order",
    "replaced": "Replaced tokens",
    "classes": "Classes",
    "perplexity": "Pseudo-perplexity",
}
_DEFAULT = "masks,next,order,replaced,classes"
_OF_PAIR = ("next", "order")
_SCORES = {
    "accuracy": "Accuracy",
    "f1_macro": "Macro F1",
    "f1_micro": "Micro F1",
    "all_labels_right": "All classes right",
    "pearson": "Pearson",
    "spearman": "Spearman",
}
_MOST_NAMED = 8  # models named in a sentence


def page():
    read = file_input.rows("dataset")
    if read is None:
        return
    rows, file_key = read
    shared = inputs.model()
    ask, hide = _settings(shared, rows)
    if not ask:
        return
    view = state.view()
    labelled = "classes" in ask and any(row.label is not None for row in rows.rows)
    given = (shared, file_key, ask, hide, labelled)
    snippets.give(*given)
    key = (shared.name, view.precision, file_key, ask, hide, view.top_k)
    if not file_input.run_requested("dataset", key, len(rows.rows) <= file_input.AT_ONCE and "perplexity" not in ask):
        st.caption(f"{count(len(rows.rows), 'row')}. Pseudo-perplexity takes as many passes as a row has tokens.")
        return
    results = jobs.result(
        "dataset",
        key,
        f"Asking {title(shared.name)} about {count(len(rows.rows), 'row')}",
        lambda progress: shared.run(score_rows, rows.rows, ask, hide, view.top_k, progress=progress),
    )
    if results is not None:
        classes = None
        if "classes" in ask:
            classes = cached("dataset_classes", key, lambda: summarise_classes(shared.bert, results))
        _show(shared, file_key, results, classes, given)


def _settings(shared, rows):
    able = [name for name in _ASK if name in supported_predictions(shared.bert)]
    if not able:
        st.warning(
            f"{title(shared.name)} has no head for words, pairs, tokens or classes, so there is nothing to ask it "
            "here. Choose another in the sidebar.",
            icon=":material/block:",
        )
        return (), "given"
    missing = [_ASK[name].lower() for name in ("masks", "perplexity") if name not in able]
    missing += ["pairs of texts"] if not set(_OF_PAIR) & set(able) else []
    if missing:
        listed = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        st.caption(f"{title(shared.name)} has no head for {listed}.")
    _say_classes(shared, rows, able)
    if not any(row.text_b for row in rows.rows):
        pairs = (*_OF_PAIR, *(["classes"] if _classes(shared) and _classes(shared).pair else []))
        able = [name for name in able if name not in pairs]
    if not able:
        st.info("This model judges pairs only, and no row here has a text B.", icon=":material/touch_app:")
        return (), "given"
    wanted = state.setting("dataset.ask", _DEFAULT).split(",")
    wanted = [name for name in able if name in wanted]
    state.set_widget("w_dataset_ask", wanted)

    def pull():
        chosen = st.session_state["w_dataset_ask"]
        # What the file or the model cannot answer keeps its place in the choice.
        rest = [name for name in state.setting("dataset.ask", _DEFAULT).split(",") if name not in able]
        cached = [name for name in _ASK if name in (*chosen, *rest)]
        state.set_setting("dataset.ask", ",".join(cached) or "none", _DEFAULT)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        ask = st.segmented_control(
            "Asked for",
            able,
            format_func=_ASK.get,
            selection_mode="multi",
            key="w_dataset_ask",
            on_change=pull,
        )
        hide = file_input.hide_picker("dataset") if "masks" in ask else "given"
    if not ask:
        st.info("Choose what to ask the model for.", icon=":material/touch_app:")
    return tuple(ask), hide


def _classes(shared):
    return classifier_settings(shared.bert)


def _say_classes(shared, rows, able):
    """What of the classes cannot be asked, and of whom else it can."""
    settings, pairs = _classes(shared), any(row.text_b for row in rows.rows)
    if settings is None:
        others = [title(name) for name, one in task_models.names().items() if one.task == "classify"]
        if others:
            st.caption(
                f"{title(shared.name)} was not fine-tuned to classify. For the class of every row choose "
                f"{escape_markdown(' or '.join(others[:_MOST_NAMED]))} in the sidebar."
            )
    elif settings.pair is False and pairs:
        st.caption(f"{title(shared.name)} classifies single texts: of a pair, text A.")
    elif settings.pair and not pairs and able != ["classes"]:
        st.caption(f"{title(shared.name)} classifies pairs, and no row here has a text B: there are no classes.")


def _show(shared, file_key, results, classes, given):
    summary, named = summarise_rows(results), subsets.read(file_key, results)
    subset_results = {name: subset_of(shared.bert, results, numbers, classes) for name, numbers in named.items()}
    with inputs.heading(count(summary.rows, "row")):
        ask, hide = given[2:4]
        predictions = DatasetPredictions(ask, hide, summary, classes, results, subset_results)
        export.save("rows", predictions, {"model": shared.name})
    _figures(summary, classes)
    if subset_results:
        every = Subset(tuple(result.row.number for result in results), summary, classes)
        _compared(shared, {subsets.WHOLE: every, **subset_results})
    if classes is not None:
        class_view.say_predicted(results, classes)
    shown, look, subset = _filtered(results, named)
    given = (*given[:5], (subset, named[subset])) if subset else given
    snippets.give(*given)
    ticked = ()
    if not shown:
        st.info("No row is left under this filter.", icon=":material/filter_alt_off:")
    elif look == "map":
        row_map_view.draw(shared, file_key, results, shown, lambda one: _open(shared, one), given)
    else:
        ticked = _rows(shared, summary, shown)
    subsets.controls(file_key, results, named, ticked, shown)
    if not shown:
        return
    problems = [one for one in results if one.problem]
    if problems:
        where = "" if look == "map" else ": the last column says why"
        st.caption(f"{count(len(problems), 'row')} could not be answered in full{where}.")
    if classes is not None:
        _of_classes(shared, results, classes, named, subset_results, subset)


def _of_classes(shared, results, classes, named, subset_results, subset):
    """What is confused, and what another threshold would give."""
    if classes.confusion:
        class_view.confusion(classes, "What it confuses")
        if subset and subset_results[subset].classes.confusion:
            class_view.confusion(
                subset_results[subset].classes,
                f"What it confuses in “{subset}”",
                "subset-confusion",
                "w_dataset_confused",
            )
    class_view.curves(shared, subsets.rows_of(results, named[subset]) if subset else results, subset)


def _compared(shared, compared):
    """Draw the numbers of all rows and of each subset; compared: dict name -> ``Subset``."""
    numbers = {name: dict(_numbers(subset.summary, subset.classes)) for name, subset in compared.items()}
    names = list(dict.fromkeys(label for line in numbers.values() for label in line))
    table = [
        (name, compared[name].summary.rows, *(line.get(label, "") for label in names)) for name, line in numbers.items()
    ]
    with inputs.heading("Subsets"):
        export.save("subsets", SubsetComparison(compared), {"model": shared.name})
    st.dataframe(
        dict(zip(("Rows of", "Rows", *names), zip(*table))), hide_index=True, width="stretch", key="w_dataset_compared"
    )


def _rows(shared, summary, shown):
    """The rows as a table, and what opens the one that is ticked.

    Returns:
        the rows that are ticked.
    """
    event = st.dataframe(
        _table(shown),
        hide_index=True,
        width="stretch",
        height=min(60 + 36 * len(shown), 520),
        key="w_dataset_table",
        on_select="rerun",
        selection_mode="multi-row",
        column_config=_COLUMNS | (_OF_PAIRS if any(one.row.text_b for one in shown) else {}),
    )
    chosen = [shown[place] for place in sorted(event.selection.rows) if place < len(shown)]
    if len(chosen) == 1:
        _open(shared, chosen[0])
    elif not chosen:
        guessed = "; a first prediction that is not the hidden word may still be a good one" if summary.masks else ""
        st.caption(
            "Press a column's name to sort, and the box before a row to open that row in another view, "
            "or before several to name them as a subset. Every "
            f"row is asked alone{guessed}."
        )
    return chosen


def _open(shared, one):
    """Widgets that open a row; one that was classified as its classifier has read it."""
    if one.task_prediction is None:
        open_row.open_row("w_dataset_open", one.row, one.places)
        return
    alone = _classes(shared).pair is False
    row = dataclasses.replace(one.row, text_b=None) if alone else one.row
    open_row.open_row("w_dataset_open", row, one.places, "task_predictions")


def _figures(summary, classes):
    shown = _numbers(summary, classes)
    if shown:
        with st.container(horizontal=True, gap="large"):
            for label, value in shown:
                st.metric(label, value, width="content")


def _numbers(summary, classes):
    """What is told of rows together: pairs of what it is and the number, written."""
    scores = classes.scores if classes else {}
    shown = [(name, f"{scores[metric]:.3f}") for metric, name in _SCORES.items() if metric in scores]
    if summary.masks:
        shown += [
            ("First prediction right", share(summary.first)),
            ("Among the predictions", share(summary.among)),
        ]
    if summary.next:
        shown.append(("B follows A", share(summary.follows)))
    if summary.order:
        shown.append(("In order", share(summary.ordered)))
    if summary.scored:
        shown.append(("Tokens rather replaced", share(summary.suspected)))
    if summary.perplexity:
        shown.append(("Pseudo-perplexity", f"{summary.perplexity:,.1f}"))
    return shown


_SHOW = {
    "all": "All rows",
    "wrong": "First prediction wrong",
    "right": "First prediction right",
    "misjudged": "Wrong class",
    "judged": "Right class",
    "problem": "With a problem",
}
_LOOKS = {"table": "Table", "map": "Map"}


def _filtered(results, named):
    """(the rows that the filters leave, how they are looked at, the subset that is chosen or "")."""
    kinds = ["all", *(kind for kind in _SHOW if kind != "all" and any(_is(one, kind) for one in results))]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        words = st.text_input(
            "Containing",
            max_chars=100,
            width=260,
            **state.bind_setting("dataset.words", "w_dataset_words", ""),
        )
        kind = "all"
        if len(kinds) > 1:
            kind = st.segmented_control(
                "Show",
                kinds,
                format_func=_SHOW.get,
                required=True,
                **state.bind_setting("dataset.show", "w_dataset_show", "all", kinds),
            )
        subset = ""
        if named:
            subset = st.selectbox(
                "Subset",
                ["", *named],
                format_func=lambda name: name or subsets.WHOLE,
                width=200,
                **state.bind_setting("dataset.subset", "w_dataset_subset", "", ["", *named]),
            )
        look = st.segmented_control(
            "Rows as",
            list(_LOOKS),
            format_func=_LOOKS.get,
            required=True,
            **state.bind_setting("dataset.look", "w_dataset_look", "table", _LOOKS),
        )
    wanted = (words or "").casefold().strip()
    return (
        [
            one
            for one in (subsets.rows_of(results, named[subset]) if subset else results)
            if _is(one, kind) and wanted in f"{one.row.text_a}\n{one.row.text_b or ''}".casefold()
        ],
        look,
        subset,
    )


def _is(one, kind):
    ranks = [mask.original_rank for mask in one.masks if mask.original is not None]
    return {
        "all": True,
        "wrong": any(rank > 1 for rank in ranks),
        "right": bool(ranks) and all(rank == 1 for rank in ranks),
        "misjudged": one.is_correct is False,
        "judged": one.is_correct is True,
        "problem": one.problem is not None,
    }[kind]


def _table(shown):
    """Columns of the rows; those without anything in them are left out."""
    columns = {
        "row": [one.row.number for one in shown],
        "a": [one.row.text_a for one in shown],
        "b": [one.row.text_b for one in shown],
        "label": [one.row.label if one.task_prediction else None for one in shown],
        "predicted": [one.predicted for one in shown],
        "sure": [one.predicted_probability for one in shown],
        "hidden": [" ".join(mask.original or "[MASK]" for mask in one.masks) or None for one in shown],
        "guess": [" ".join(mask.predictions[0].token for mask in one.masks) or None for one in shown],
        "share": [one.masks[0].predictions[0].probability if one.masks else None for one in shown],
        "rank": [max((m.original_rank for m in one.masks if m.original), default=None) for one in shown],
        "next": [one.is_next for one in shown],
        "order": [one.in_order for one in shown],
        "suspected": [one.suspected for one in shown],
        "most_suspected": [one.most_likely_replaced and one.most_likely_replaced[0] for one in shown],
        "replaced": [one.most_likely_replaced and one.most_likely_replaced[1] for one in shown],
        "perplexity": [one.perplexity for one in shown],
        "tokens": [one.tokens or None for one in shown],
        "problem": [one.problem for one in shown],
    }
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


_COLUMNS = {
    "row": st.column_config.NumberColumn("Row", width="small"),
    "a": st.column_config.TextColumn("Text A", width="large"),
    "b": st.column_config.TextColumn("Text B", width="medium"),
    "label": "Label",
    "predicted": "Class found",
    "sure": st.column_config.ProgressColumn("P(class)", format="percent", min_value=0, max_value=1),
    "hidden": "Hidden",
    "guess": "First prediction",
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
