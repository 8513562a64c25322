"""Side by side: two models, two texts, or both."""

import functools

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import compare
from bert_tf.explain.models.model_facts import ModelFacts, ModelFactsTable
from bert_tf.explain.models.side_by_side import ComparedAnswers, compared_side
from pages.compare import attention_view, comparison_inputs
from pages.compare.snippets.side_by_side import snippet
from ui.elements import components, tables
from ui.elements.cards import cards
from ui.session import model_store, state
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import comparison, export, head_predictions, inputs, model_offer, task_predictions
from ui.widgets.formatting import count


def _compared(view):
    """The view of a row; a row of the page Agreement keeps the two models of that page."""
    if view.page != "agreement":
        return view
    return comparison.with_compared_models(view, *comparison.compared_models(view, "agreement"))


PAGE = Page(
    name="side_by_side",
    group="Compare",
    order=1,
    title="Side by side",
    question="Two models on one text, one model on two texts, or both",
    terms="base large compare two models two texts difference",
    summary=(
        "two models (also snapshots of a training) on one text, one model on two texts, or both: predictions "
        "with differences marked, predictions for pairs, predictions of fine-tuned models (classes, labels, "
        "answers), agreement, size, speed, attention at the same relative depth (one head or the mean, lines, maps, "
        "their difference), the likeliest word or class after every layer"
    ),
    presses={
        "": Press("chip", MASKED),
        "lines": Press("chip", {**MASKED, "side_by_side.drawn": "lines"}),
        "difference": Press("chip", {**MASKED, "side_by_side.drawn": "difference"}),
        "layers": Press("chip", {**MASKED, "side_by_side.look": "layers"}),
    },
    analyses=("compare",),
    settings=("what", "a", "b", "mask", "one", "other", "look", "head", "drawn", "at"),
    settings_help=(
        "`texts` or `both`; the second texts and what is masked in them; `layers`; head from 1, 0 the mean; "
        "`lines` `difference`; which of several masks; `one`, `other`: the two models or snapshots "
        "(`plain-english/step-1000`) that this page uses instead of `model` and `with`; names of known models, "
        "never paths"
    ),
    long_settings={"a": "the second text A", "b": "the second text B"},
    opens_rows=True,
    from_row=_compared,
    snippet=snippet,
)


def page():
    installed = model_store.installed()
    model_offer.draw("side_by_side")
    choice = state.setting("side_by_side.what", "models")
    choice = choice if choice in comparison_inputs.COMPARED else "models"
    st.segmented_control(
        "Compare",
        list(comparison_inputs.COMPARED),
        format_func=comparison_inputs.COMPARED.get,
        label_visibility="collapsed",
        required=True,
        **state.bind_setting("side_by_side.what", "w_side_by_side_what", "models", comparison_inputs.COMPARED),
    )
    if choice != "texts" and not comparison.has_two_models(installed):
        st.info(
            "A comparison of models needs two, and only one is installed here. You can compare two texts.",
            icon=":material/compare_arrows:",
        )
        return
    if choice != "texts":
        comparison.pickers(installed, "side_by_side")
    case_folded = bool(state.view().a.strip()) and choice == "models"
    with st.expander("Texts and masks", expanded=not case_folded, icon=":material/edit_note:"):
        inputs.examples()
        inputs.text_fields()
        if choice != "models":
            comparison_inputs.second_text_fields()
    if not inputs.texts_are_usable():
        return
    pair = comparison_inputs.sides(choice)
    if pair is None:
        return
    comparison_inputs.token_strips(pair, choice)
    # One forward pass of each model gives all values of the chosen view.
    traces = [side.trace(hidden_states=attention_view.shows_layers()) for side in pair]
    call = Call.of(compare, top_k=state.view().top_k, across=True)
    compared = call.run(
        *traces,
        *(side.shared.tokenizer for side in pair),
        *(side.shared.config.num_hidden_layers for side in pair),
    )
    sides = (compared_side(trace, side.shared.tokenizer, state.view().top_k) for side, trace in zip(pair, traces))
    result = ComparedAnswers(*sides, compared)
    tasks = [task_predictions.predict_task(side.key, side.shared, side.text_a, side.text_b) for side in pair]
    snippets.give(pair, traces, call)
    _results(pair, traces, result, tasks)
    _agreement(pair, traces, result)
    if None not in tasks:
        save = functools.partial(comparison_inputs.save, pair=pair, texts=[task.texts for task in tasks])
        task_predictions.differences("w_side_by_side_classes", [side.name for side in pair], tasks, save)
    if choice != "texts":
        _facts(pair, traces, {info.name: info for info in installed})
    attention_view.draw(pair, traces, result)


def _results(pair, traces, result, tasks):
    st.header("Predictions", anchor=False)
    rows = zip(st.columns(2, gap="large"), pair, traces, (result.a, result.b), tasks)
    for column, side, trace, answers, task in rows:
        with column:
            st.markdown(f"**{side.name}**")
            if answers.masks:
                shared = comparison.shared_predictions(result.comparison, pair, side.key)
                components.bars(f"c_side_by_side_bars_{side.key}", cards(answers.masks, shared=shared))
            elif "mlm" not in trace.heads:
                st.caption("No head for masked words.")
            else:
                st.caption("Nothing is hidden: press a token above.")
            if trace.text_b is not None:
                head_predictions.pair_prediction(f"c_side_by_side_gauge_{side.key}", trace)
            if trace.replaced is not None:
                head_predictions.replaced_tokens(f"c_side_by_side_replaced_{side.key}", trace)
            if task is not None:
                task_predictions.draw(f"c_side_by_side_task_{side.key}", task)
            elif any(tasks):
                st.caption("Not fine-tuned: no classes, labels or answers.")
    if any(tasks) and any(trace.masks for trace in traces):
        st.caption("A fine-tuned model's own prediction is for the text with nothing hidden.")
    if result.comparison.masks:
        st.caption("An orange edge marks a prediction that the other side does not make.")
    st.caption("A difference on this text does not show which side is better, nor that they differ on other texts.")


def _agreement(pair, traces, result):
    compared = result.comparison
    sentences = _head_differences(traces, compared)
    if not compared.masks and not sentences:
        return
    inputs.heading("Where they agree")
    comparison_inputs.save("comparison", result, pair, map(export.texts_of, traces))
    if compared.masks:
        _table(pair, traces, compared)
    if sentences:
        st.caption(" ".join(sentences))
    unmatched = len(compared.unmatched_a) + len(compared.unmatched_b)
    if unmatched:
        same = (traces[0].text_a, traces[0].text_b) == (traces[1].text_a, traces[1].text_b)
        cause = "because the models split words differently" if same else "because masks are paired in reading order"
        have = "has" if unmatched == 1 else "have"
        st.caption(f"{count(unmatched, 'masked token')} {have} no counterpart, {cause}.")


def _head_differences(traces, compared):
    """Sentences: how much the predictions of the heads for pairs and for replaced tokens differ."""
    differences = (
        ("P(IsNext) differs by {:.1f} percentage points.", compared.is_next_difference),
        ("P(in order) differs by {:.1f} percentage points.", compared.in_order_difference),
        ("P(replaced) of a token differs by {:.1f} percentage points on average.", compared.replaced_difference),
    )
    sentences = [sentence.format(100 * abs(value)) for sentence, value in differences if value is not None]
    if {"nsp", "sop"} == {head for trace in traces for head in ("nsp", "sop") if getattr(trace, head) is not None}:
        sentences.append(
            "One side predicts the next sentence, the other the sentence order: these numbers cannot be compared."
        )
    return sentences


def _folded(compared):
    """The end of a help text: how spellings are compared; "" if both models know capital letters."""
    if not compared.case_folded:
        return ""
    return (
        " Spellings that differ in capital letters alone count as one token, also of those that could be shared,"
        " and their probabilities are added."
    )


def _table(pair, traces, compared):
    top_k = state.view().top_k
    tables.show(
        comparison.agreement_rows(compared, traces),
        hide_index=True,
        width="stretch",
        key="w_agreement",
        column_config={
            "shared": st.column_config.ProgressColumn(
                f"Top {top_k} shared",
                format="percent",
                width=115,
                min_value=0,
                max_value=1,
                help=f"How many of the {top_k} likeliest tokens of one side are among those of the other."
                + _folded(compared),
            ),
            "divergence": st.column_config.ProgressColumn(
                "Divergence",
                format="%.3f bits",
                min_value=0,
                max_value=1,
                help="The Jensen-Shannon divergence. 0 bits: the same distribution. 1 bit: no token in common.",
            ),
            "masked": "Masked",
            "one": st.column_config.TextColumn(pair[0].name, help="The first prediction of this side."),
            "other": st.column_config.TextColumn(pair[1].name, help="The first prediction of this side."),
        },
    )
    if compared.case_folded:
        st.caption(
            f"One model knows only lower case: capital letters count as small ones, and the {compared.common_tokens:,} "
            "tokens that both have are compared."
        )


def _facts(pair, traces, infos):
    inputs.heading("Size and speed")
    container = st.container()
    seconds = comparison.latencies(pair, state.view().precision)
    table = comparison.model_facts(pair, traces, infos, seconds)
    container.table(table)
    if seconds is None:
        return
    facts = (_model_facts(*side_facts, infos) for side_facts in zip(pair, traces, seconds))
    comparison_inputs.save("facts", ModelFactsTable(tuple(facts)), pair, map(export.texts_of, traces))
    st.caption("Time: the median of up to five warm forward passes on this machine, without attention maps.")


def _model_facts(side, trace, seconds, infos):
    """The ``ModelFacts`` of a side; infos: dict name -> ``ModelInfo``."""
    shared, info = side.shared, infos.get(side.shared.name)
    return ModelFacts(
        name=side.name,
        model=shared.name,
        layers=shared.config.num_hidden_layers,
        heads=shared.config.num_attention_heads,
        hidden_size=shared.config.hidden_size,
        parameters=shared.parameters,
        weight_bytes=shared.weight_bytes,
        disk_bytes=info.size_bytes if info else None,
        tokens=trace.length,
        seconds=seconds,
    )
