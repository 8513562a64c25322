"""Dataset: predictions for all rows of a file, as a table or a map; each row can be opened in other pages."""

import dataclasses
import math

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import score_rows, summarise_classes, summarise_rows, supported_predictions
from bert_tf.explain.attribution.target import classifier_settings, reads_single_texts
from bert_tf.explain.datasets.dataset import DatasetPredictions, Subset, subset_of
from bert_tf.explain.datasets.subset_comparison import SubsetComparison
from bert_tf.finetuning.task_settings import undefined_note
from pages.data import class_view, row_map_view, subsets
from pages.data.snippets.dataset import snippet
from ui.elements import tables
from ui.session import jobs, state, task_models
from ui.session.session_cache import cached
from ui.shell import open_row, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, file_input, head_predictions, inputs
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
    terms=(
        "data file CSV JSONL rows upload metrics perplexity accuracy confusion matrix PR ROC curve subsets map UMAP PCA"
    ),
    summary=(
        "predictions for all rows of a file, by the heads that the model has: hidden words, next sentence, sentence "
        "order, replaced tokens, pseudo-perplexity; with a model fine-tuned to classify, the class of every row, and "
        "if the file has labels, accuracy, macro F1 and the confusion matrix; computed in the background, with "
        "progress and Stop; sort, filter, export, open any row in any page that reads a text; subsets of rows with "
        "names, their scores beside those of all rows; the rows as a map, each a point by PCA, UMAP or t-SNE in 2 or "
        "3 dimensions, coloured by an attribute, and the rows nearest to one"
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
        "the class whose curves are drawn; the threshold of its probability, `0.35`; the subsets, "
        "`reviews.csv/long ones/1-4.7` with `;` between; the chosen subset; `map`; the attribute that "
        "colours its points (`label`, `predicted`, `right`, `is_next`, …); `umap` or `tsne`; `1` for three "
        "dimensions; `first` for the first token's hidden state; hidden state (0 the embeddings); number of "
        "the chosen row"
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
#: Task that this page does not show -> what a model is fine-tuned to do.
_OWN_TASK = {
    "tag": "to label every word",
    "answer": "to find answers in passages",
    "choose": "to choose the best continuation",
}
_MOST_NAMED = 8  # models listed in a sentence


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
    labelled = "classes" in ask and any(row.label for row in rows.rows)
    call = Call.of(score_rows, ask=tuple(ask), hide=hide, top_k=view.top_k)
    snippet_arguments = (shared, file_key, call, labelled)
    snippets.give(*snippet_arguments)
    key = (shared.name, view.precision, file_key, call)
    if not file_input.run_requested("dataset", key, len(rows.rows) <= file_input.AT_ONCE and "perplexity" not in ask):
        st.caption(f"{count(len(rows.rows), 'row')}. Pseudo-perplexity takes one forward pass for each token of a row.")
        return
    results = jobs.result(
        "dataset",
        key,
        f"Asking {title(shared.name)} about {count(len(rows.rows), 'row')}",
        lambda progress: shared.run(call.run, rows.rows, progress=progress),
    )
    if results is not None:
        classes = None
        if "classes" in ask:
            classes = cached("dataset_classes", key, lambda: summarise_classes(shared.bert, results))
        _show(shared, file_key, results, classes, snippet_arguments)


def _settings(shared, rows):
    """The widgets that choose the predictions; returns (names of `_ASK`, which words are hidden)."""
    if not head_predictions.can_analyse(shared, "dataset"):
        task = task_models.names().get(shared.name)
        if task:
            st.info(
                f"It was fine-tuned {_OWN_TASK[task.task]}: the page Task predictions shows that.",
                icon=":material/info:",
            )
        return (), "given"
    able = [name for name in _ASK if name in supported_predictions(shared.bert)]
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
        # The choice of predictions that this file or model does not allow stays in the link.
        not_offered = [name for name in state.setting("dataset.ask", _DEFAULT).split(",") if name not in able]
        names = [name for name in _ASK if name in (*chosen, *not_offered)]
        state.set_setting("dataset.ask", ",".join(names) or "none", _DEFAULT)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        ask = st.segmented_control(
            "Predictions",
            able,
            format_func=_ASK.get,
            selection_mode="multi",
            key="w_dataset_ask",
            on_change=pull,
        )
        hide = file_input.hide_picker("dataset") if "masks" in ask else "given"
    if not ask:
        st.info("Choose at least one kind of prediction.", icon=":material/touch_app:")
    return tuple(ask), hide


def _classes(shared):
    return classifier_settings(shared.bert)


def _say_classes(shared, rows, able):
    """Write why classes cannot be predicted, or not for all rows, and which other models predict them."""
    settings, pairs = _classes(shared), any(row.text_b for row in rows.rows)
    if settings is None:
        others = [title(name) for name, task in task_models.names().items() if task.task == "classify"]
        if others:
            st.caption(
                f"{title(shared.name)} was not fine-tuned to classify. For the class of every row choose "
                f"{escape_markdown(' or '.join(others[:_MOST_NAMED]))} in the sidebar."
            )
    elif settings.pair is False and pairs:
        st.caption(f"{title(shared.name)} classifies single texts: in a pair it reads text A alone.")
    elif settings.pair and not pairs and able != ["classes"]:
        st.caption(f"{title(shared.name)} classifies pairs, and no row here has a text B: there are no classes.")


def _show(shared, file_key, results, classes, snippet_arguments):
    """Draw the results of all rows: their scores, the subsets, the table or the map."""
    summary, named = summarise_rows(results), subsets.read(file_key, results)
    subset_results = {name: subset_of(shared.bert, results, numbers, classes) for name, numbers in named.items()}
    inputs.heading(count(summary.rows, "row"))
    call = snippet_arguments[2]
    predictions = DatasetPredictions(call["ask"], call["hide"], summary, classes, results, subset_results)
    export.save("rows", predictions, {"model": shared.name})
    _figures(summary, classes)
    if subset_results:
        every = Subset(tuple(result.row.number for result in results), summary, classes)
        _compared(shared, {subsets.WHOLE: every, **subset_results})
    _say_undefined([classes, *(subset.classes for subset in subset_results.values())])
    if classes is not None:
        class_view.say_predicted(results, classes)
    filtered, look, subset = _filtered(results, named)
    if subset:
        snippet_arguments = (*snippet_arguments, (subset, named[subset]))
    snippets.give(*snippet_arguments)
    ticked = ()
    if not filtered:
        st.info("No row is left under this filter.", icon=":material/filter_alt_off:")
    elif look == "map":
        row_map_view.draw(shared, file_key, results, filtered, lambda result: _open(shared, result), snippet_arguments)
    else:
        ticked = _rows(shared, summary, filtered)
    subsets.controls(file_key, results, named, ticked, filtered)
    if not filtered:
        return
    problems = [result for result in results if result.problem]
    if problems:
        where = "" if look == "map" else ": the last column gives the reason"
        st.caption(f"{count(len(problems), 'row')} could not be answered in full{where}.")
    if classes is not None:
        _of_classes(shared, results, classes, named, subset_results, subset)


def _of_classes(shared, results, classes, named, subset_results, subset):
    """Draw the confusion matrices, and the scores at other thresholds."""
    if classes.confusion:
        class_view.confusion(classes, "Confusion matrix")
        if subset and subset_results[subset].classes.confusion:
            class_view.confusion(
                subset_results[subset].classes,
                f"Confusion matrix of “{subset}”",
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
    inputs.heading("Subsets")
    export.save("subsets", SubsetComparison(compared), {"model": shared.name})
    tables.show(
        dict(zip(("Rows of", "Rows", *names), zip(*table))), hide_index=True, width="stretch", key="w_dataset_compared"
    )


def _rows(shared, summary, filtered):
    """Draw the rows as a table, and the widgets that open a ticked row.

    Returns:
        list of the ``RowResult``s that are ticked.
    """
    event = tables.show(
        _table(filtered),
        hide_index=True,
        width="stretch",
        height=tables.height(len(filtered), 520),
        key=tables.key_of("w_dataset_table", ((result.row.number, result.row.text_a) for result in filtered)),
        on_select="rerun",
        selection_mode="multi-row",
        column_config=_COLUMNS | (_OF_PAIRS if any(result.row.text_b for result in filtered) else {}),
    )
    ticked = [filtered[place] for place in sorted(event.selection.rows) if place < len(filtered)]
    if len(ticked) == 1:
        _open(shared, ticked[0])
    elif not ticked:
        first_predictions = " A first prediction that is not the hidden word may still fit." if summary.masks else ""
        st.caption(
            "Press a column's name to sort. Press the box before a row to open that row in another page, "
            f"or the boxes before several rows to name them as a subset. The model reads every row alone."
            f"{first_predictions}"
        )
    return ticked


def _open(shared, result):
    """Draw the widgets that open a row; for a classified row, with the texts that its classifier has read."""
    if result.task_prediction is None:
        open_row.open_row("w_dataset_open", result.row, result.places)
        return
    reads_text_a_only = reads_single_texts(shared.bert)
    row = dataclasses.replace(result.row, text_b=None) if reads_text_a_only else result.row
    open_row.open_row("w_dataset_open", row, result.places, "task_predictions")


def _figures(summary, classes):
    numbers = _numbers(summary, classes)
    if numbers:
        with st.container(horizontal=True, gap="large"):
            for label, value in numbers:
                st.metric(label, value, width="content")


def _say_undefined(classes):
    """Write why scores are undefined, once for all; classes: ``ClassSummary``s or None."""
    notes = [note for one in classes if one is not None and (note := undefined_note(one.scores))]
    if notes:
        st.caption(notes[0])


def _numbers(summary, classes):
    """The scores and shares of some rows: list of (label, formatted number); an undefined score is "–"."""
    scores = classes.scores if classes else {}
    numbers = [
        (name, "–" if math.isnan(scores[metric]) else f"{scores[metric]:.3f}")
        for metric, name in _SCORES.items()
        if metric in scores
    ]
    if summary.masks:
        numbers += [
            ("First prediction right", share(summary.first)),
            (f"In the top {state.view().top_k}", share(summary.among)),
        ]
    if summary.next:
        numbers.append(("B follows A", share(summary.follows)))
    if summary.order:
        numbers.append(("In order", share(summary.ordered)))
    if summary.scored:
        numbers.append(("Tokens probably replaced", share(summary.suspected)))
    if summary.perplexity:
        numbers.append(("Pseudo-perplexity", f"{summary.perplexity:,.1f}"))
    return numbers


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
    """The filter widgets; returns (the rows that pass, "table" or "map", the name of the chosen subset or "")."""
    kinds = ["all", *(kind for kind in _SHOW if kind != "all" and any(_is(result, kind) for result in results))]
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
            result
            for result in (subsets.rows_of(results, named[subset]) if subset else results)
            if _is(result, kind) and wanted in f"{result.row.text_a}\n{result.row.text_b or ''}".casefold()
        ],
        look,
        subset,
    )


def _is(result, kind):
    """Whether a ``RowResult`` is of a kind of `_SHOW`."""
    ranks = [mask.original_rank for mask in result.masks if mask.original is not None]
    return {
        "all": True,
        "wrong": any(rank > 1 for rank in ranks),
        "right": bool(ranks) and all(rank == 1 for rank in ranks),
        "misjudged": result.is_correct is False,
        "judged": result.is_correct is True,
        "problem": result.problem is not None,
    }[kind]


def _table(results):
    """The columns of the table without empty ones: what is predicted is before the texts, which are long."""
    columns = {
        "row": [result.row.number for result in results],
        "label": [result.label if result.task_prediction else None for result in results],
        "predicted": [result.predicted for result in results],
        "sure": [result.predicted_probability for result in results],
        "hidden": [" ".join(mask.original or "[MASK]" for mask in result.masks) or None for result in results],
        "prediction": [" ".join(mask.predictions[0].token for mask in result.masks) or None for result in results],
        "share": [result.masks[0].predictions[0].probability if result.masks else None for result in results],
        "rank": [max((m.original_rank for m in result.masks if m.original), default=None) for result in results],
        "next": [result.is_next for result in results],
        "order": [result.in_order for result in results],
        "suspected": [result.suspected for result in results],
        "most_suspected": [result.most_likely_replaced and result.most_likely_replaced[0] for result in results],
        "replaced": [result.most_likely_replaced and result.most_likely_replaced[1] for result in results],
        "perplexity": [result.perplexity for result in results],
        "a": [result.row.text_a for result in results],
        "b": [result.row.text_b for result in results],
        "tokens": [result.tokens or None for result in results],
        "problem": [result.problem for result in results],
    }
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


_COLUMNS = {
    "row": st.column_config.NumberColumn("Row", width=50),
    "a": st.column_config.TextColumn("Text A", width="large"),
    "b": st.column_config.TextColumn("Text B", width="medium"),
    "label": "Label",
    "predicted": "Predicted class",
    "sure": st.column_config.ProgressColumn("P(class)", format="percent", min_value=0, max_value=1),
    "hidden": "Hidden",
    "prediction": "First prediction",
    "share": st.column_config.ProgressColumn("Its probability", format="percent", min_value=0, max_value=1),
    "rank": st.column_config.NumberColumn(
        "Rank", help="The rank of the hidden token among all tokens; of several, the worst."
    ),
    "next": st.column_config.ProgressColumn("P(IsNext)", format="percent", min_value=0, max_value=1),
    "order": st.column_config.ProgressColumn("P(in order)", format="percent", min_value=0, max_value=1),
    "suspected": st.column_config.NumberColumn(
        "Probably replaced", help="The number of tokens that were replaced with a probability above one half."
    ),
    "most_suspected": "Most probably replaced",
    "replaced": st.column_config.ProgressColumn("P(replaced)", format="percent", min_value=0, max_value=1),
    "perplexity": st.column_config.NumberColumn("Pseudo-perplexity", format="%.1f"),
    "tokens": "Tokens",
    "problem": "Problem",
}

#: The columns that are narrower beside a second text, so that all columns have room.
_OF_PAIRS = {
    "a": st.column_config.TextColumn("Text A", width=185),
    "b": st.column_config.TextColumn("Text B", width=185),
    "share": {**_COLUMNS["share"], "width": 125},
    "next": {**_COLUMNS["next"], "width": 125},
    "order": {**_COLUMNS["order"], "width": 125},
}
