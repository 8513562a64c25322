"""The installed fine-tuned models, example inputs for their tasks, and their predictions in the form to draw."""

import dataclasses
import json
from pathlib import Path

import streamlit as st

from bert_tf.explain.datasets.text_rows import lines_with_text
from bert_tf.plots.numbers import percent
from ui.samples.examples import is_example
from ui.session import model_store, state
from ui.shell.server_cache import server_cache
from ui.widgets.formatting import isolated

_MOST_CHOICES = 12

#: (task, whether it reads pairs) -> examples: (label, text A, text B).
EXAMPLES = {
    ("classify", False): (
        ("Praise", "A warm, funny film, and one of the finest of the year.", ""),
        ("Blame", "Two hours of noise without a single idea.", ""),
        ("Both", "The story is thin, but the two leads are a joy to watch.", ""),
        ("Not bad", "It is not bad at all, though nobody will call it a masterpiece.", ""),
    ),
    ("classify", True): (
        ("The same", "The company sold its factory in May.", "In May the firm sold its plant."),
        ("Not the same", "The company sold its factory in May.", "The company opened a new factory in May."),
    ),
    ("tag", False): (
        ("Berlin", "Angela Merkel met Barack Obama in Berlin on a rainy Friday.", ""),
        ("Fish", "The old man the boats, and the young can fish.", ""),
        ("Book", "Please book a table; I left the book on it yesterday.", ""),
    ),
    ("answer", True): (
        (
            "Lighthouse",
            "Who kept the lamp burning?",
            "The lighthouse on the northern cape was built in 1862 from grey stone. For forty years Anna Berg, the "
            "daughter of a fisherman, kept the lamp burning and wrote down every ship that passed. In 1961 the light "
            "was replaced by an electric one.",
        ),
        (
            "Tea",
            "Why is green tea not brown?",
            "All tea comes from one plant. Black tea is made of leaves that were left to oxidise, which turns them "
            "brown. Green tea is heated soon after the harvest, so that the leaves do not oxidise.",
        ),
    ),
    ("similarity", True): (
        ("Alike", "The weather is lovely today.", "It is so sunny outside!"),
        ("Not alike", "The weather is lovely today.", "He drove to the stadium."),
    ),
    ("choose", True): (
        ("Rain", "It began to rain, so she", "opened her umbrella.\nwatered the garden.\nate the piano."),
    ),
}


def names():
    """The fine-tuned models that may be chosen: dict from a model's name to its ``TaskSettings``."""
    from bert_tf.finetuning.task_settings import TASKS

    settings = _settings(tuple((info.name, str(info.path)) for info in model_store.installed()))
    # In the order of the tasks, so that the page opens with a classifier of texts if there is one.
    return dict(sorted(settings.items(), key=lambda item: TASKS.index(item[1].task)))


@server_cache(max_entries=8, seconds=10)
def _settings(folders):
    from bert_tf.finetuning.task_settings import read_settings

    settings_by_name = {}
    for name, path in folders:
        try:
            settings = read_settings(path)
        except (ValueError, OSError):
            continue  # the folder of a training that has not ended
        if settings is not None:
            settings_by_name[name] = settings
    return settings_by_name


def pairs():
    """The installed fine-tuned models with an installed base model: dict from a model's name to its base model's."""
    known = names()
    return {name: base for name in known if (base := _base(name, known))}


def _base(name, known):
    """The installed model from which a fine-tuned one was trained, or None.

    If neither its folder nor its run names it, this is the only installed model of its shape and vocabulary.
    """
    installed = {info.name: info for info in model_store.installed()}
    noted = known[name].base_model or _start(installed[name].path)
    if noted is not None:
        # The folder of a base model that was given by its path is named by that.
        by_folder = {str(info.path.resolve()): name for name, info in installed.items()}
        return noted if noted in installed else by_folder.get(noted)
    config = installed[name].config
    if config is None:
        return None
    shape = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    same = [
        info.name
        for info in installed.values()
        if info.name not in known
        and info.config is not None
        and all(getattr(info.config, setting) == getattr(config, setting) for setting in shape)
    ]
    return same[0] if len(same) == 1 else None


def _start(folder):
    """The name of the model from which a run started, read from the run or its report, or None."""
    for file in ("run/settings.json", "report/metrics.json"):
        try:
            return Path(json.loads((folder / file).read_text(encoding="utf-8"))["start"]).name
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def examples(settings):
    """Draw a pill for each example of a task; a press puts the example's texts into the view."""
    known = _examples_of(settings)
    labels, view = [label for label, _, _ in known], state.view()
    current = next((label for label, a, b in known if (a, b) == (view.a, view.b)), None)
    state.set_widget("w_task_example", current)

    def pick():
        chosen = st.session_state["w_task_example"] or current
        _, a, b = known[labels.index(chosen)]
        state.change_view(a=a, b=b, masks=(), start=0)

    if labels:
        st.pills("Examples", labels, key="w_task_example", on_change=pick, label_visibility="collapsed")


def open_own_example(settings):
    """If the view has an example of a page or of another task, open the task's first example.

    A text that the visitor typed stays.
    """
    view = state.view()
    suited = _with_example_of(settings, view)
    if suited is not view:
        state.correct_view(a=suited.a, b=suited.b, masks=suited.masks, start=suited.start)


def with_example(view, page_example):
    """The view with an example that suits its model, if its text is an example that does not.

    A model that is fine-tuned for a task gets the first example of the task; another model gets the page's example in
    the place of a task's.

    Args:
        view: ``View``. page_example: ``Example`` of the view's page.
    """
    settings, texts = names().get(view.model), (view.a, view.b)
    if settings is None:
        if texts not in _of_tasks() or texts == (page_example.a, page_example.b):
            return view
        return dataclasses.replace(view, a=page_example.a, b=page_example.b, masks=page_example.masks, start=0)
    return _with_example_of(settings, view)


def _with_example_of(settings, view):
    """The view with the task's first example if its texts are examples, but none of the task."""
    suiting, texts = [(a, b) for _, a, b in _examples_of(settings)], (view.a, view.b)
    if not suiting or texts in suiting or not (texts in _of_tasks() or is_example(*texts)):
        return view
    return dataclasses.replace(view, a=suiting[0][0], b=suiting[0][1], masks=(), start=0)


def _of_tasks():
    """The texts A and B of the examples of all tasks."""
    return {(a, b) for known in EXAMPLES.values() for _, a, b in known}


def _examples_of(settings):
    return EXAMPLES.get((settings.task, bool(settings.pair or settings.task in ("answer", "choose"))), ())


def record(settings, a, b):
    """The input of a task's model: a dict, as its ``predict`` takes it."""
    if settings.task == "answer":
        return {"question": a, "passage": b, "curves": True}
    if settings.task == "choose":
        return {"context": a, "choices": lines_with_text(b)[:_MOST_CHOICES]}
    if settings.task == "tag":
        return {"text": a}
    both = settings.pair or settings.pair is None and b.strip()
    return {"text_a": a, "text_b": b} if both else {"text_a": a}


def endings_note(settings, b):
    """A sentence on the endings in text B that are left out; "" if all are read, and for other tasks than "choose"."""
    more = settings.task == "choose" and len(lines_with_text(b)) > _MOST_CHOICES
    return f"The first {_MOST_CHOICES} endings are read." if more else ""


def reads_text_b(settings):
    """Whether the model of a task may read a text B; one that may read pairs reads single texts too."""
    return settings.task in ("answer", "choose") or settings.pair is not False


def texts_of_task(settings, a, b):
    """(text A, text B) as the task's model reads them; text B is "" if it does not."""
    return a, b if reads_text_b(settings) else ""


def text_b_of_task(settings, b, prediction):
    """Text B of one pass of the task's model: "" for a single text; of several endings the predicted one.

    Args:
        settings: ``TaskSettings``. b: text B of the view. prediction: of the task's model.
    """
    if settings.task == "choose":
        return prediction["text"]
    return texts_of_task(settings, "", b)[1]


def probabilities_by_ending(settings, b, prediction):
    """Dict from each ending to its probability; one that was given several times has its number after it.

    Args:
        as of ``text_b_of_task``, for the task "choose".
    """
    choices = record(settings, "", b)["choices"]
    names = [f"{one} ({number})" if choices.count(one) > 1 else one for number, one in enumerate(choices, 1)]
    return dict(zip(names, prediction["probabilities"]))


def packed(shared, settings, a, b):
    """The encodings that the model of a task reads: a list; empty for "tag" and "answer", which read windows."""
    if settings.task == "classify":
        pairs = [(a, record(settings, a, b).get("text_b"))]
    elif settings.task == "similarity":
        pairs = [(a, None), (b, None)]
    elif settings.task == "choose":
        pairs = [(a, choice) for choice in record(settings, a, b)["choices"]]
    else:
        return []  # these tasks read the whole text in windows
    return [shared.tokenizer.encode(*pair, max_length=settings.max_length) for pair in pairs]


def labelled_spans(prediction):
    """The labelled spans of a tagged text: list of (start, end, label, probability)."""
    if "entities" in prediction:
        return [
            (entity["start"], entity["end"], entity["type"], entity["probability"]) for entity in prediction["entities"]
        ]
    rows = zip(prediction["spans"], prediction["labels"], prediction["probabilities"])
    return [(start, end, label, chance) for (start, end), label, chance in rows]


def spans_to_draw(prediction):
    """The labelled spans of a tagged text: (places for ``split_at_spans``, labels in order of appearance)."""
    labelled = labelled_spans(prediction)
    labels = list(dict.fromkeys(label for _, _, label, _ in labelled))
    text = prediction["text"]
    places = [
        (start, end, labels.index(label), label, f"{isolated(text[start:end])}: {label}, {percent(chance)}")
        for start, end, label, chance in labelled
    ]
    return places, labels
