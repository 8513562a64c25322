"""Task predictions: the predictions of a fine-tuned model for the visitor's text."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import occlusion
from bert_tf.explain.attribution.target import class_target
from bert_tf.finetuning.tasks.prediction_results import (
    ExtractedAnswers,
    LabelledSpan,
    LabelledSpans,
    OptionProbabilities,
    PredictedValue,
)
from bert_tf.inference.words import read_texts
from bert_tf.plots.diverging import diverging_ramp
from bert_tf.plots.numbers import percent
from bert_tf.plots.training.task_predictions import probabilities
from pages.tasks.snippets.task_predictions import snippet
from ui.elements import tables
from ui.elements.cells import marks
from ui.elements.spans import spans, split_at_spans
from ui.samples.examples import Example
from ui.session import calls, state, task_models
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, highlights, inputs
from ui.widgets.formatting import escape_markdown, milliseconds, number, title
from ui.widgets.task_predictions import NAMES as TASK_NAMES
from ui.widgets.task_predictions import note_endings


def _by_the_same_model(view):
    """The view of a row with the fine-tuned model of the page that the row comes from."""
    return view.with_setting("task_predictions.model", view.model) if view.model in task_models.names() else view


PAGE = Page(
    name="task_predictions",
    group="Tasks",
    order=1,
    title="Task predictions",
    question="Fine-tuned: one model, many tasks",
    terms=(
        "classification sentiment NER named entities parts of speech POS question answering SQuAD multiple choice "
        "fine-tuned"
    ),
    summary=(
        "a fine-tuned model on the visitor's text: classes, labelled words, an answer in a passage, endings; "
        "which words matter, by masking each"
    ),
    presses={"": Press("choice: Examples: Praise|Blame", of_texts=False)},
    example=Example(*task_models.EXAMPLES["classify", False][0], masks=()),
    settings=("model", "words", "windows"),
    settings_help=(
        "name of a fine-tuned model; `1` to mask each word of a long text too; `mean` or `max` to read a text that is "
        "too long in windows, `cut` to cut it"
    ),
    opens_rows=True,
    from_row=_by_the_same_model,
    is_available=lambda: bool(task_models.names()),
    snippet=snippet,
)


_FIELDS = {
    "classify": (("Text", "A text to classify."), ("Second text", "The text to compare it with.")),
    "tag": (("Text", "A text whose words are labelled."), None),
    "answer": (("Question", "What do you want to know?"), ("Passage", "The text that holds the answer.")),
    "similarity": (("Text", "A sentence."), ("Second text", "The sentence to compare it with.")),
    "choose": (("Beginning", "How it begins."), ("Endings", "One possible ending a line.")),
}
_MOST_WORDS = 60
_NOTABLE = 0.01  # nats or points: a smaller effect of a word counts as none
_WINDOWS = {"mean": "Mean of windows", "max": "Maximum of windows", "cut": "Cut the end"}


def page():
    known = task_models.names()
    if not known:
        st.info(
            "No fine-tuned model is here yet. Train one under Fine-tune.",
            icon=":material/school:",
        )
        return
    name = _picked(known)
    settings = known[name]
    task_models.open_own_example(settings)
    task_models.examples(settings)
    inputs.text_fields(_fields(settings), undo=True)
    if not _usable(settings):
        return
    shared = inputs.model(name)
    view = state.view()
    trained = windows = settings.extra.get("windows")
    if packed := task_models.packed(shared, settings, view.a, view.b):
        longest = max(packed, key=lambda encoding: sum(encoding.truncated))
        if settings.task == "classify" and any(longest.truncated):
            windows = _windows(trained)
        if windows is None:
            inputs.warn_truncated(longest)
    # Windows as in the training keep the step of the training.
    windows = () if windows == trained else (windows,)
    prediction = _prediction(shared, settings, windows)
    snippets.give(shared, task_models.record(settings, view.a, view.b), windows=windows)
    _DRAW_TASK[settings.task](shared, settings, prediction)
    with st.container(horizontal=True):
        st.button(
            "Open its attention on this text",
            icon=":material/arrow_forward:",
            type="tertiary",
            key="w_task_attention",
            on_click=lambda: state.change_view(
                model=name, page="all_heads", masks=(), b=task_models.text_b_of_task(settings, view.b, prediction)
            ),
        )
    st.caption(f"{title(name)} · fine-tuned to {TASK_NAMES[settings.task]} · {milliseconds(prediction['seconds'])}")


def _picked(known):
    labels = {name: f"{title(name)}" for name in known}
    model = state.view().model
    first = model if model in known else next(iter(known))
    name = st.segmented_control(
        "Task model",
        list(known),
        format_func=labels.get,
        **state.bind_setting("task_predictions.model", "w_task_model", first, known),
    )
    return name or first


def _windows(trained):
    """Draw the choice of how a text that is too long is read; returns "mean" or "max", or None to cut it.

    Args:
        trained: the same of the model's training.
    """
    chosen = st.segmented_control(
        "The text is longer than the model reads at once",
        list(_WINDOWS),
        format_func=_WINDOWS.get,
        required=True,
        help="Windows overlap by half, or as in the training of the model, and cover the whole text; of a pair they "
        "move over the second text. The mean or the maximum is that of their logits.",
        **state.bind_setting("task_predictions.windows", "w_task_windows", trained or "cut", _WINDOWS),
    )
    return None if chosen == "cut" else chosen


def _fields(settings):
    """The fields of the texts that the task reads."""
    first, second = _FIELDS[settings.task]
    return (first, second) if second and task_models.reads_text_b(settings) else (first,)


def _texts(settings):
    """(Text A, text B) of the view as the task reads them."""
    view = state.view()
    return task_models.texts_of_task(settings, view.a, view.b)


def _usable(settings):
    """Whether the texts can be read by the task; if not, the page says why."""
    view = state.view()
    most = state.limits().max_characters
    for side, (label, _) in zip("ab", _fields(settings)):
        text = getattr(view, side)
        if len(text) > most:
            st.error(f"{label}: {len(text):,} characters; at most {most:,} are read here. Shorten it.")
            return False
        if not text.strip() and (side == "a" or settings.pair):
            st.info(f"{label} is empty. Type one, or pick an example above.", icon=":material/keyboard:")
            return False
    return True


def _prediction(shared, settings, windows):
    """The prediction for the view's texts, with its ``seconds``; ``windows``: see ``snippet``."""
    import time

    view = state.view()

    def predict(bert):
        task = bert.task.with_windows(*windows) if windows else bert.task
        return task.predict([task_models.record(settings, view.a, view.b)])

    def ask():
        began = time.perf_counter()
        (prediction,) = shared.run(predict)
        return {**prediction, "seconds": time.perf_counter() - began}

    return cached("task", (shared.name, view.precision, view.a, view.b, windows), ask)


def _classes(shared, settings, prediction):
    texts = _texts(settings)
    if settings.regression:
        inputs.heading("Score")
        export.save("score", PredictedValue(prediction, shared.name, *texts), {"model": shared.name}, texts)
        st.metric("Score", number(prediction["value"]), label_visibility="collapsed")
        st.caption("A number on the scale of the training labels; the model gives no measure of its certainty.")
        label = None
    else:
        probabilities_by_class = dict(sorted(prediction["probabilities"].items(), key=lambda one: -one[1]))
        label = next(iter(probabilities_by_class))
        inputs.heading("Classes")
        result = OptionProbabilities(prediction, "class", probabilities_by_class)
        export.save("classes", result, {"model": shared.name}, texts)
        figures.show(
            "Probability of each class",
            probabilities(probabilities_by_class, probabilities_by_class.values(), state.is_dark()),
            config=export.plot_config("classes"),
            key="w_task_classes",
        )
        independent = settings.multi_label
        each = (
            "Each label has its own probability"
            if independent
            else "The probabilities add up to 100%: one class is the likeliest even if none fits"
        )
        st.caption(f"{each}. On texts unlike its training texts the model can be wrong with a high probability.")
    _words(shared, settings, label)


def _words(shared, settings, label):
    """Draw the effect of each word on the prediction, by masking it."""
    view = state.view()
    (packed,) = task_models.packed(shared, settings, view.a, view.b)
    texts = read_texts(packed, view.a, task_models.record(settings, view.a, view.b).get("text_b", ""))
    key = (shared.name, view.precision, *texts)
    trace = cached("task_trace", key, lambda: shared.trace(*texts, ()))
    # Of a text that is read in windows, or that the limits cut.
    if any(packed.truncated) or any(trace.truncated):
        st.caption("The words below are those that the model reads at once, from the beginning.")
    words = len(trace.words())
    inputs.heading("The words that matter")
    if words > _MOST_WORDS and not st.toggle(
        f"Mask each of the {words} words in turn (takes a while)",
        **state.bind_setting("task_predictions.words", "w_task_words", False),
    ):
        return
    target = shared.run(class_target, trace, label)
    call = Call.of(occlusion, target=target)
    snippets.add(trace=trace, call=call)
    saliency = calls.job_result(shared, call, trace, label="Masking words", name="task words")
    if saliency is None:
        return
    unit = "points" if settings.regression else "nats"
    export.save("words", saliency, {"unit": unit}, trace=trace)
    marks(
        "c_task_words",
        highlights.word_highlights(trace, saliency.words, saliency.target, unit, _NOTABLE),
        diverging_ramp(state.is_dark()),
        ("opposes it", "supports it"),
        "Point at a word, or tap it, for its score.",
    )
    if max((abs(scored.score) for scored in saliency.words), default=0.0) < _NOTABLE:
        st.caption(
            f"No word matters alone: without any one of them the prediction changes by less than {_NOTABLE} {unit}."
        )
    predicted = "the score" if settings.regression else f"“{escape_markdown(target.label)}”"
    st.caption(
        f"The score of a word is how much {predicted} falls when the word is replaced by [MASK]. Words that can "
        "replace each other all seem unimportant.",
        help="For gradients of the same prediction see Explain, Saliency.",
    )


def _tags(shared, settings, prediction):
    places, labels = task_models.spans_to_draw(prediction)
    counts = [sum(kind == index for _, _, kind, _, _ in places) for index in range(len(labels))]
    labelled_spans = (
        LabelledSpan(start, end, prediction["text"][start:end], label, probability)
        for start, end, label, probability in task_models.labelled_spans(prediction)
    )
    inputs.heading("Labelled words")
    export.save("marked", LabelledSpans(prediction, tuple(labelled_spans)), {"model": shared.name}, _texts(settings))
    if not places:
        st.info("The model found no word with one of its labels.", icon=":material/search_off:")
    spans(
        "c_task_spans",
        split_at_spans(prediction["text"], places),
        [{"kind": index, "label": label, "note": f" {counts[index]}"} for index, label in enumerate(labels)],
        "Point at a word, or tap it, for the probability of its label.",
    )
    st.caption(
        "The model knows these labels alone, as in its training texts; on other texts it can be wrong with a high "
        "probability."
    )


def _answers(shared, settings, prediction):
    passage = state.view().b
    result = ExtractedAnswers(prediction, passage)
    inputs.heading("Answer")
    export.save("answers", result, {"model": shared.name}, _texts(settings))
    if prediction["start"] is None:
        st.info(
            "The model finds no answer in the passage (probability of no answer "
            f"{percent(prediction['probability'])}).",
            icon=":material/search_off:",
        )
        places = []
    else:
        tip = f"{prediction['answer']}: {percent(prediction['probability'])}"
        places = [(prediction["start"], prediction["end"], 0, "", tip)]
    spans("c_task_answer", split_at_spans(passage, places), [], "")
    left, right = st.columns(2, gap="large")
    with left:
        tables.show(
            {
                "answer": [answer["text"] for answer in prediction["n_best"]],
                "probability": [answer["probability"] for answer in prediction["n_best"]],
            },
            hide_index=True,
            key="w_task_answers",
            column_config={
                "answer": st.column_config.TextColumn("Answer", width="medium"),
                "probability": st.column_config.ProgressColumn("Probability", min_value=0, max_value=1),
            },
        )
    with right:
        figures.show(
            "Where the answer begins and ends",
            result.figure(dark=state.is_dark()),
            config=export.plot_config("answer"),
            key="w_task_curves",
        )
        st.caption("The probability of each token to begin and to end the answer, computed independently.")


def _endings(shared, settings, prediction):
    probabilities_by_ending = task_models.probabilities_by_ending(settings, state.view().b, prediction)
    inputs.heading("Endings")
    result = OptionProbabilities(prediction, "ending", probabilities_by_ending)
    export.save("endings", result, {"model": shared.name}, _texts(settings))
    figures.show(
        "Probability of each ending",
        probabilities(probabilities_by_ending, probabilities_by_ending.values(), state.is_dark()),
        config=export.plot_config("endings"),
        key="w_task_endings",
    )
    note_endings(settings, state.view().b)
    st.caption("The endings are compared with each other alone: one is the likeliest even if none fits.")


def _similarity(shared, settings, prediction):
    texts = _texts(settings)
    inputs.heading("Cosine similarity")
    export.save("similarity", PredictedValue(prediction, shared.name, *texts), {"model": shared.name}, texts)
    st.metric("Cosine similarity", number(prediction["value"], 3), label_visibility="collapsed")
    st.caption(
        "The cosine of the vectors of the two texts, −1 to 1; each text is read alone. More sentences, and a search "
        "over a file: Representations, Sentence similarity."
    )


_DRAW_TASK = {
    "classify": _classes,
    "tag": _tags,
    "answer": _answers,
    "choose": _endings,
    "similarity": _similarity,
}
