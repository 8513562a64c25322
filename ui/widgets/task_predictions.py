"""The prediction of a fine-tuned model in a small form for comparisons, and the differences of two such predictions."""

import dataclasses

import streamlit as st

from bert_tf.finetuning.tasks.prediction_results import ComparedClasses, ComparedSpans, ComparedValues
from bert_tf.plots.numbers import percent
from ui.elements import components, tables
from ui.elements.spans import spans, split_at_spans
from ui.session import state, task_models
from ui.session.session_cache import cached
from ui.widgets import inputs
from ui.widgets.formatting import count, escape_markdown, number

NAMES = {
    "classify": "classify texts",
    "tag": "mark words",
    "answer": "answer questions",
    "choose": "choose endings",
    "similarity": "compare sentences",
}
_MOST = 10  # classes drawn of one model


@dataclasses.dataclass(frozen=True)
class TaskPrediction:
    """The prediction of one model.

    Attributes:
        settings: ``TaskSettings``. a, b: the texts. answer: the task's prediction; None if there is none.
        problem: the reason why there is none, a sentence; else "".
    """

    settings: object
    a: str
    b: str
    answer: dict | None
    problem: str = ""

    @property
    def texts(self):
        """(Text A, text B) as the model reads them; text B is "" if it reads none."""
        return task_models.texts_of_task(self.settings, self.a, self.b)

    @property
    def shares(self):
        """Dict from a class or an ending to its probability; None for other tasks."""
        if self.answer is None or "probabilities" not in self.answer or self.settings.task == "tag":
            return None
        if self.settings.task == "choose":
            return task_models.probabilities_by_ending(self.settings, self.b, self.answer)
        return self.answer["probabilities"]

    @property
    def labels_by_span(self):
        """Dict from the (start, end) of a labelled span to its label; None for other tasks."""
        if self.answer is None or self.settings.task != "tag":
            return None
        return {(start, end): label for start, end, label, _ in task_models.labelled_spans(self.answer)}

    @property
    def rows(self):
        """List of (kind or label, item, number): a row for each class, ending, score, labelled span or answer."""
        if self.answer is None:
            return []
        if self.shares is not None:
            return [(self.settings.task, label, float(share)) for label, share in self.shares.items()]
        if self.settings.regression:
            return [("score", "", float(self.answer["value"]))]
        if self.settings.task == "tag":
            return [
                (label, self.answer["text"][start:end], float(share))
                for start, end, label, share in task_models.labelled_spans(self.answer)
            ]
        return [("answer", self.answer["answer"], float(self.answer["probability"]))]


def predict_task(place, shared, a, b):
    """The ``TaskPrediction`` of a model for two texts without masks; None if the model was not fine-tuned.

    Args:
        place: the name of the prediction in the visitor's cache. shared: ``SharedModel``. a, b: texts; b may be empty.
    """
    if shared.bert.task is None:
        return None
    settings = shared.bert.task.settings
    why_not = problem(settings, a, b)
    if why_not:
        return TaskPrediction(settings, a, b, None, why_not)
    record = task_models.record(settings, a, b)
    key = (shared.name, state.view().precision, a, b)
    (answer,) = cached(f"verdict_{place}", key, lambda: shared.run(lambda bert: bert.task.predict([record])))
    return TaskPrediction(settings, a, b, answer)


def problem(settings, a, b):
    """What the texts lack for a task, a sentence; "" if they are complete."""
    if settings.task == "answer" and not b.strip():
        return "It answers from a passage: type one as text B."
    if settings.task == "choose" and len(task_models.record(settings, a, b)["choices"]) < 2:
        return "It chooses among endings: type at least two as text B, one on each line."
    if settings.task in ("classify", "similarity") and settings.pair and not b.strip():
        return "It judges pairs: type a text B."
    return ""


def note_endings(settings, b):
    """Write that some of the endings in text B are left out, if there are too many."""
    if note := task_models.endings_note(settings, b):
        st.caption(note)


def draw(key, prediction):
    """Draw a ``TaskPrediction``; ``key``: of the component."""
    if prediction.problem:
        st.caption(prediction.problem)
    elif prediction.shares is not None:
        components.bars(
            key, [_card("The class" if prediction.settings.task == "classify" else "The ending", prediction.shares)]
        )
    elif prediction.settings.regression:
        st.metric("Score", number(prediction.answer["value"]))
    elif prediction.settings.task == "tag":
        places, labels = task_models.spans_to_draw(prediction.answer)
        spans(
            key,
            split_at_spans(prediction.answer["text"], places),
            [{"kind": kind, "label": label, "note": ""} for kind, label in enumerate(labels)],
            "Point at a word, or tap it, for how sure the model is.",
        )
    else:
        _draw_answer(key, prediction)
    if prediction.b.strip() and not task_models.reads_text_b(prediction.settings):
        st.caption("Its task reads only text A.")
    note_endings(prediction.settings, prediction.b)


def _draw_answer(key, prediction):
    answer = prediction.answer
    if answer["start"] is None:
        st.caption(f"It finds no answer in the passage ({percent(answer['probability'])} sure of that).")
        return
    tip = f"{answer['answer']}: {percent(answer['probability'])}"
    spans(key, split_at_spans(prediction.b, [(answer["start"], answer["end"], 0, "", tip)]), [], "")


def _card(title, shares):
    best = sorted(shares, key=lambda label: -shares[label])[:_MOST]
    return {
        "position": 0,
        "title": title,
        "note": "",
        "foot": "",
        "predictions": [
            {"id": place, "text": label, "p": float(shares[label]), "right": False} for place, label in enumerate(best)
        ],
    }


def differences(key, names, pair, save):
    """Draw the differences of the predictions of two fine-tuned models, or of one model for two inputs.

    Args:
        key: of the table. names: of the two sides. pair: two ``TaskPrediction``s.
        save: callable (name, result) that offers a result of both sides in the menu Save.
    """
    one, other = pair
    if one.answer is None or other.answer is None:
        return
    if None not in (one.shares, other.shares):
        _class_differences(key, names, one.shares, other.shares, save)
    elif one.settings.task != other.settings.task or one.settings.regression != other.settings.regression:
        tasks = [
            "give a score" if prediction.settings.regression else NAMES[prediction.settings.task] for prediction in pair
        ]
        st.caption(
            f"{escape_markdown(names[0])} was fine-tuned to {tasks[0]}, {escape_markdown(names[1])} to {tasks[1]}: "
            "their predictions cannot be compared."
        )
    elif one.settings.regression:
        values = [prediction.answer["value"] for prediction in pair]
        _save_answers(names, values, "score", values, save)
        st.caption(f"The scores differ by {abs(values[0] - values[1]):.2f}.")
    elif one.settings.task == "tag":
        _label_differences(key, names, one, other, save)
    else:
        answers, shares = ([prediction.answer[part] for prediction in pair] for part in ("answer", "probability"))
        _save_answers(names, answers, "probability", shares, save)
        same = one.answer["answer"] == other.answer["answer"]
        st.caption("Both give the same answer." if same else "They give different answers.")


def _save_answers(names, answers, quantity, values, save):
    """Offer the answers of two sides in the menu Save, with one number for each; ``quantity``: its name."""
    inputs.heading("The answers of both")
    save("answers-compared", ComparedValues(tuple(names), tuple(answers), quantity, tuple(values)))


def _class_differences(key, names, one, other, save):
    result = ComparedClasses.of(names, one, other)
    if not result.labels:
        st.caption("The two have no class of the same name: their predictions cannot be compared.")
        return
    best = [max(shares, key=shares.get) for shares in (one, other)]
    inputs.heading("The classes of both")
    save("classes-compared", result)
    if best[0] == best[1]:
        st.markdown(f"Both find **{escape_markdown(best[0])}** likeliest.")
    else:
        st.markdown(
            f"{escape_markdown(names[0])} finds **{escape_markdown(best[0])}** likeliest,"
            f" {escape_markdown(names[1])} **{escape_markdown(best[1])}**."
        )
    percents = st.column_config.NumberColumn
    tables.show(
        result.to_frame(),
        hide_index=True,
        width="stretch",
        key=key,
        column_config={
            "class": "Class",
            "one": percents(names[0], format="percent"),
            "other": percents(f"{names[1]} " if names[0] == names[1] else names[1], format="percent"),
            "difference": percents("Difference", format="percent"),
        },
    )


def _label_differences(key, names, one, other, save):
    if one.a != other.a:
        st.caption("They read different texts: their labels cannot be compared.")
        return
    result = ComparedSpans(tuple(names), one.a, one.labels_by_span, other.labels_by_span)
    different = [place for place in result.places if result.one.get(place) != result.other.get(place)]
    inputs.heading("The labels of both")
    save("marks-compared", result)
    verb = "differs" if len(different) == 1 else "differ"
    st.caption(f"{len(different)} of {count(len(result.places), 'labelled span')} {verb}.")
    if different:
        tables.show(
            {
                "text": [one.a[start:end] for start, end in different],
                "one": [result.one.get(place, "") for place in different],
                "other": [result.other.get(place, "") for place in different],
            },
            hide_index=True,
            width="stretch",
            key=key,
            column_config={"text": "Text", "one": names[0], "other": names[1]},
        )
